"""Reductions over the threads of a workgroup: over lanes in registers, and then over waves.

TVM's own lowering halves the threads step by step in the LDS, and each step waits for the one
before. Lanes exchange values in a few cycles; what is left are as many values as there are waves,
which all threads read at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    AttrStmt,
    BufferLoad,
    BufferStore,
    CommReducer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    Select,
    SeqStmt,
    Stmt,
    Var,
)

from mfmadsl.model import Architecture
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.block import in_sequence
from mfmadsl.passes.tir.expression import bits_of, constant, depends, i32, loads_of, substitute
from mfmadsl.passes.tir.rewrite import dtype_of, with_body

_HALF = 16  # bits, of which what lanes exchange has a multiple
_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")


def reduce_by_waves(function: PrimFunc, chip: Architecture) -> PrimFunc:
    """The function with reductions over whole waves, or over a power of two of their lanes.

    What reduces other threads, or under a condition that not all threads share, stays as it is.
    """
    return with_body(function, _rewritten(function.body, _Place(chip.wave_size)))


@dataclass(frozen=True)
class _Place:
    """Where a statement stands: among which threads, by their axes, and whether in a loop."""

    wave_size: int
    threads: Mapping[str, tuple[Var, int]] = field(default_factory=dict)
    in_loop: bool = False

    def with_axis(self, statement: AttrStmt) -> _Place:
        """The place in a statement that binds an index."""
        axis, extent = statement.node, constant(statement.value)
        found = {**self.threads, str(axis.thread_tag): (axis.var, extent or 0)}
        return replace(self, threads=found)

    def is_common(self, condition: Expr) -> bool:
        """Whether all threads of a workgroup surely share a condition."""
        own = [self.threads[axis][0] for axis in _AXES if axis in self.threads]
        return not loads_of(condition) and not any(depends(condition, each) for each in own)


@dataclass(frozen=True)
class _Reduction:
    """What `tvm_thread_allreduce` says: `results` get the values of all `threads`, combined."""

    combiner: CommReducer
    values: tuple[Expr, ...]
    condition: Expr
    results: tuple[Expr, ...]
    threads: tuple[Expr, ...]

    @classmethod
    def of(cls, statement: AttrStmt) -> _Reduction:
        """What a statement with that call in it says."""
        body = statement.body
        assert isinstance(body, Evaluate)
        assert isinstance(body.value, Call)
        count, *rest = body.value.args
        n = int(count)
        values, results, threads = rest[:n], rest[n + 1 : 2 * n + 1], rest[2 * n + 1 :]
        return cls(statement.node, tuple(values), rest[n], tuple(results), tuple(threads))

    @property
    def is_symmetric(self) -> bool:
        """Whether two values become the same whichever of them is the first."""
        first, *others = self.combiner.result
        if others or not isinstance(first, tirx.Add | tirx.Mul | tirx.Max | tirx.Min):
            return False
        own = self.combiner.lhs[0], self.combiner.rhs[0]
        return any(first.a.same_as(a) and first.b.same_as(b) for a, b in (own, own[::-1]))

    def combined(self, first: Sequence[Expr], second: Sequence[Expr]) -> list[Expr]:
        """What two threads' values become."""
        own = dict(zip(self.combiner.lhs, first, strict=True))
        own |= dict(zip(self.combiner.rhs, second, strict=True))
        return [substitute(each, own) for each in self.combiner.result]


@dataclass(frozen=True)
class _Group:
    """`size` threads, one after the other, that are reduced together.

    Their workgroup has `threads` in all, of which each is the one of number `thread`.
    """

    size: int
    threads: int
    thread: Expr
    wave_size: int
    in_loop: bool

    @property
    def waves(self) -> int:
        """The waves that it has, 0 if it is a part of one."""
        return self.size // self.wave_size


def _rewritten(statement: Stmt, place: _Place) -> Stmt:
    if isinstance(statement, SeqStmt):
        return SeqStmt([_rewritten(each, place) for each in statement.seq])
    if isinstance(statement, For):
        body = _rewritten(statement.body, replace(place, in_loop=True))
        return For(
            statement.loop_var, statement.min, statement.extent, statement.kind, body,
            statement.thread_binding, statement.annotations, statement.step,
        )  # fmt: skip
    if isinstance(statement, IfThenElse) and place.is_common(statement.condition):
        other = statement.else_case
        return IfThenElse(
            statement.condition,
            _rewritten(statement.then_case, place),
            None if other is None else _rewritten(other, place),
        )
    if not isinstance(statement, AttrStmt):
        return statement
    if statement.attr_key == "reduce_scope":
        reduction = _Reduction.of(statement)
        group = _group_of(reduction, place)
        return statement if group is None else _lowered(reduction, group)
    inner = place.with_axis(statement) if statement.attr_key == "thread_extent" else place
    body = _rewritten(statement.body, inner)
    return AttrStmt(statement.node, statement.attr_key, statement.value, body)


def _group_of(reduction: _Reduction, place: _Place) -> _Group | None:
    """The threads that are reduced; None if they lie in parts of several waves."""
    size = threads = 1
    thread: Expr = i32(0)
    for axis in _AXES:
        if axis not in place.threads:
            continue
        variable, extent = place.threads[axis]
        if any(each.same_as(variable) for each in reduction.threads) and extent != 1:
            if size != threads:  # those of another axis stand between
                return None
            size *= extent
        thread = thread + variable.astype("int32") * threads
        threads *= extent
    lanes = place.wave_size
    in_waves = size > 0 and (size % lanes == 0 if size > lanes else lanes % size == 0)
    are_whole = threads % lanes == 0 or (threads < lanes and threads % size == 0)
    are_halves = all(bits_of(dtype_of(each)) % _HALF == 0 for each in reduction.values)
    if not (in_waves and are_whole and are_halves):
        return None
    return _Group(size, threads, Analyzer().simplify(thread), lanes, place.in_loop)


class _Statements:
    """Statements that are added one by one."""

    def __init__(self) -> None:
        self.made: list[Stmt] = []

    def held(self, values: Sequence[Expr]) -> list[Expr]:
        """The values in registers: TVM would put the values of variables in where they stand."""
        found: list[Expr] = []
        for value in values:
            register = tirx.decl_buffer((1,), dtype_of(value), "reduced", scope="local")
            self.made += [AllocBuffer(register), BufferStore(register, value, [0])]
            found.append(BufferLoad(register, [0]))
        return found


def _lowered(reduction: _Reduction, group: _Group) -> Stmt:
    """What takes the place of a reduction."""
    code = _Statements()
    values = list(reduction.values)
    if constant(reduction.condition) != 1:
        none = reduction.combiner.identity_element
        values = [Select(reduction.condition, *both) for both in zip(values, none, strict=True)]
    values = code.held(values)
    lanes = 1
    while lanes < min(group.size, group.wave_size):
        lanes *= 2
        others = code.held([device.other_half(each, lanes) for each in values])
        first, second = values, others
        if not reduction.is_symmetric:
            is_first = group.thread % lanes < lanes // 2
            first = [Select(is_first, *both) for both in zip(values, others, strict=True)]
            second = [Select(is_first, *both) for both in zip(others, values, strict=True)]
        values = code.held(reduction.combined(first, second))
    if group.waves > 1:
        values = _over_waves(reduction, group, values, code)
    for result, value in zip(reduction.results, values, strict=True):
        assert isinstance(result, TensorLoad)  # where to, as TVM writes it
        code.made.append(BufferStore(result.source, value, result.indices))
    return SeqStmt(code.made)


def _over_waves(
    reduction: _Reduction, group: _Group, values: Sequence[Expr], code: _Statements
) -> list[Expr]:
    """The values of all waves of a group, combined by each thread."""
    count = group.threads // group.wave_size
    buffers = [
        tirx.decl_buffer((count,), dtype_of(each), "of_waves", scope="shared") for each in values
    ]
    code.made += map(AllocBuffer, buffers)
    if group.in_loop:  # all have read what the last turn left
        code.made.append(_barrier())
    wave = group.thread // group.wave_size
    stores = [BufferStore(b, value, [wave]) for b, value in zip(buffers, values, strict=True)]
    is_first = tirx.EQ(group.thread % group.wave_size, i32(0))
    code.made += [IfThenElse(is_first, in_sequence(stores), None), _barrier()]
    first = group.thread // group.size * group.waves
    every = [[BufferLoad(each, [first + n]) for each in buffers] for n in range(group.waves)]
    found: list[Expr] = code.held(every[0])
    for others in every[1:]:
        found = code.held(reduction.combined(found, code.held(others)))
    return found


def _barrier() -> Stmt:
    return Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))
