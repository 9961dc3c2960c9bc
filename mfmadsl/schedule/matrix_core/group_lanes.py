"""Whether the lanes of a wave hold whole groups of columns: proofs about the places they store."""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Range
from tvm.sym import Analyzer
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import constant, substitute
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.nest import is_number

_LANES = 64


class LaneGroup:
    """The lanes of a group: `count` neighbours lie in each, and the next in the lane beside it.

    Expressions are of the variable `lane`, and of others that the analyzer knows the ranges of.
    """

    def __init__(self, analyzer: Analyzer, lane: Var, width: int, count: int) -> None:
        lanes = width // count
        self._width, self._count = width, count
        self._group, self._inside = tirx.Var("group", "int32"), tirx.Var("inside", "int32")
        self._first = {lane: self._group * lanes}
        self._any = {lane: self._group * lanes + self._inside}
        self._analyzer = analyzer
        self._analyzer.bind(self._group, Range(0, _LANES // lanes))
        self._analyzer.bind(self._inside, Range(0, lanes))

    def shares(self, value: Expr) -> bool:
        """Whether a value is the same in all of the lanes."""
        return self._steps_by(value, 0)

    def goes_over(self, column: Expr) -> bool:
        """Whether each lane's first column is `count` behind that of the lane before, and the
        first lane's begins a group."""
        start = tirx.floormod(substitute(column, self._first), self._width)
        begins = is_number(self._analyzer.simplify(start), 0)
        return begins and self._steps_by(column, self._count)

    def runs_whole(self, condition: Expr) -> bool:
        """Whether a condition holds for all of the columns or for none."""
        if not isinstance(condition, tirx.LT) or not self.shares(condition.b):
            return False
        bound = constant(condition.b)
        ends = bound is not None and bound % self._width == 0
        return self.shares(condition.a) or (ends and self.goes_over(condition.a))

    def _steps_by(self, value: Expr, step: int) -> bool:
        here, first = (substitute(value, at) for at in (self._any, self._first))
        return self._analyzer.can_prove_equal(self._parted(here) - first, self._inside * step)

    def _parted(self, value: Expr) -> Expr:
        """A value with what lanes add taken out of remainders and quotients by whole groups.

        TVM does so for some numbers only.
        """
        steps = self._inside * self._count

        def parted(found: tirx.FloorMod | tirx.FloorDiv) -> Expr:
            by = constant(found.b)
            first = substitute(found.a, {self._inside: tirx.const(0, "int32")})
            begins = self._analyzer.simplify(tirx.floormod(first, self._width))
            adds = self._analyzer.can_prove_equal(found.a - first, steps)
            if by is None or by % self._width or not is_number(begins, 0) or not adds:
                return found
            if isinstance(found, tirx.FloorMod):
                return tirx.floormod(first, found.b) + steps
            return tirx.floordiv(first, found.b)

        return mapped(value, ((tirx.FloorMod, tirx.FloorDiv), parted))
