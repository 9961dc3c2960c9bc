"""What is known of a main loop's iterations, its threads, and the extents of its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant, depends, substitute, variables_of
from mfmadsl.passes.tir.linear import bounded, linear_in


@dataclass(frozen=True)
class Loop:
    """The variable of a loop and how often it runs.

    `analyzer` knows the bounds of all variables, and `before_last` those of all iterations but the
    last. `threads` is how many there are of each thread index, and `symbols` are the extents that
    are known at the launch only. `lean` says that registers are scarce. `gathered` are the indices
    that are read of memory, and what each is: an iteration's, where the loop's variable is in that.
    `moving_edges` says that edges which may hold anything are those in the loop's variable, too.
    """

    variable: tirx.Var
    count: Expr
    analyzer: Analyzer
    before_last: Analyzer
    threads: Mapping[str, int]
    symbols: frozenset[str] = frozenset()
    lean: bool = False
    gathered: Mapping[tirx.Var, Expr] = field(default_factory=dict)
    moving_edges: bool = False

    def is_uniform(self, expression: Expr) -> bool:
        """Whether it is the same for all threads, and no index that is read in each iteration."""
        if any(self.is_moving(variable) for variable in variables_of(expression)):
            return False
        return not any(v.name in self.threads for v in variables_of(self.with_reads(expression)))

    def is_moving(self, variable: tirx.Var) -> bool:
        """Whether a variable is an index that is read in each iteration."""
        read = self.gathered.get(variable)
        return read is not None and depends(read, self.variable)

    def with_reads(self, expression: Expr) -> Expr:
        """An expression with what is read of memory in place of its gathered indices."""
        return substitute(expression, self.gathered) if self.gathered else expression

    def holds_before_last(self, condition: Expr) -> bool:
        """Whether a condition holds in all iterations but the last one.

        The analyzer proves it for numbers; for a symbolic K from the loop's extent being its
        quotient, rounded up.
        """
        if self.before_last.can_prove(condition):
            return True
        sides = bounded(condition)
        if sides is None or constant(self.count) is not None:
            return False
        part = linear_in(sides[0], self.variable)
        step = None if part is None else constant(part[0])
        if part is None or step is None or step <= 0:
            return False
        rounded_up = tirx.floordiv(sides[1] + (step - 1), tirx.const(step, str(sides[1].ty.dtype)))
        most = int(self.analyzer.const_int_bound(part[1]).max_value)
        return most < step and bool(self.analyzer.can_prove_equal(self.count, rounded_up))
