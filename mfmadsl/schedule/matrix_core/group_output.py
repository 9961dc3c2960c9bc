"""Results of groups of columns in a scheduled product: what its lanes hold, compared and stored.

A lane holds some neighbours of a row of C, and the lanes beside it those beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import tvm_ffi
from tvm import tirx
from tvm.ir import Range
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.analysis import get_sblock_access_region
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferRegion, BufferStore, Expr, For, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.expression import (
    among,
    bits_of,
    conjuncts_of,
    constant,
    depends,
    step_of,
    substitute,
    variables_of,
)
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.group_body import Body
from mfmadsl.schedule.product.added_nest import again
from mfmadsl.schedule.product.dataflow import holds
from mfmadsl.schedule.product.group_output import GroupOutput
from mfmadsl.schedule.product.nest import buffers, is_number, line

_LANES = 64
_OCTET = "uint8"


def with_group_output(function: PrimFunc, output: GroupOutput) -> PrimFunc:
    """The scheduled workload of an output with its results in the place of the stand-in.

    Elements of four bits are stored as bytes of two. Raises ScheduleError where a wave does not
    hold whole groups.
    """
    place = [p.same_as(output.stand_in) for p in output.workload.params].index(True)
    own = dict(zip(output.function.params, function.params, strict=True))
    results = {each.buffer: _as_stored(each.buffer) for each in output.outputs}
    lowering = _Lowering(output, function.params[place], own, results, _loops(function.body))
    body = _with_innermost(function.body, lowering.stored)
    body = tvm_ffi.structural_map(body, (SBlock, lowering.around))
    parameters = [results.get(old, new) for old, new in own.items()]
    return PrimFunc(parameters, body, function.ret_type, attrs=function.attrs)


def _with_innermost(body: Stmt, changed: Callable[[Stmt], Stmt | None]) -> Stmt:
    """A statement with others in the place of some of the loops and sequences in it."""
    several: list[Stmt] = []
    tvm_ffi.structural_walk(body, ((For, tirx.SeqStmt), several.append))
    # What is raised within one of TVM's maps loses its type.
    found = {each.__chandle__(): made for each in several if (made := changed(each)) is not None}
    return tvm_ffi.structural_map(
        body, ((For, tirx.SeqStmt), lambda each: found.get(each.__chandle__(), each))
    )


def _as_stored(buffer: Buffer) -> Buffer:
    """The parameter of a result: bytes, where elements have four bits."""
    if bits_of(buffer.dtype) >= 8:
        return buffer
    *rows, columns = buffer.shape
    return tirx.decl_buffer([*rows, int(columns) // 2], _OCTET, buffer.name)


def _loops(body: Stmt) -> list[For]:
    found: list[For] = []
    tvm_ffi.structural_walk(body, (For, found.append))
    return found


def _is_of_lanes(loop: For) -> bool:
    """Whether a loop goes over the lanes of a wave."""
    return loop.thread_binding is not None and loop.thread_binding.thread_tag == "threadIdx.x"


def _stored(statement: Stmt) -> list[Buffer]:
    found: list[Buffer] = []
    tvm_ffi.structural_walk(statement, (BufferStore, lambda store: found.append(store.buffer)))
    return found


@dataclass(frozen=True)
class _Lowering:
    """Statements with what stores `stand_in` replaced; parameters are `own` ones, or `results`."""

    output: GroupOutput
    stand_in: Buffer
    own: Mapping[Buffer, Buffer]
    results: Mapping[Buffer, Buffer]
    loops: Sequence[For]

    @cached_property
    def analyzer(self) -> Analyzer:
        """What is known of the loops."""
        analyzer = Analyzer()
        for each in self.loops:
            analyzer.bind(each.loop_var, Range.from_min_extent(each.min, each.extent))
        return analyzer

    def refusal(self, what: str) -> ScheduleError:
        """The error that refuses a tiling."""
        name, width = self.output.outputs[0].buffer.name, self.output.width
        return ScheduleError(
            f"tiling: {width} neighbouring columns, of which `{name}` is made, {what}: take a wave"
            f" tile of a multiple of {width} columns"
        )

    def stored(self, statement: Stmt) -> Stmt | None:
        """What takes the place of a loop or sequence around the block that stores the stand-in."""
        if isinstance(statement, tirx.SeqStmt):
            several = list(statement.seq)
            if not any(self._is_store(each) for each in several):
                return None
            return tirx.SeqStmt(
                [self._grouped(s, None, 1) if self._is_store(s) else s for s in several]
            )
        if not self._is_store(statement.body):
            return None
        count = self._neighbours(statement, statement.body)
        if count > 1:
            return self._grouped(statement.body, statement.loop_var, count)
        return again([statement], self._grouped(statement.body, None, 1))

    def around(self, block: SBlock) -> SBlock:
        """A block around it, which says to write the results."""
        left = [each for each in block.writes if not each.source.same_as(self.stand_in)]
        if len(left) == len(block.writes):
            return block
        made = [
            BufferRegion(each, [Range(0, extent) for extent in each.shape])
            for each in self.results.values()
        ]
        return SBlock(
            block.iter_vars, block.reads, [*left, *made], block.name_hint, block.body, block.init,
            block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip

    def _is_store(self, statement: Stmt) -> bool:
        if not isinstance(statement, SBlockRealize):
            return False
        store = _conditional(statement.block.body)[1]
        return isinstance(store, BufferStore) and store.buffer.same_as(self.stand_in)

    def _grouped(self, realize: SBlockRealize, inner: Var | None, count: int) -> Stmt:
        """The block with results instead, of `count` neighbours along a loop `inner`."""
        block = realize.block
        inside, store = _conditional(block.body)
        first = {} if inner is None else {inner: tirx.const(0, "int32")}
        values = [substitute(value, first) for value in realize.iter_values]
        condition = substitute(realize.predicate, first)
        axes = [axis.var for axis in block.iter_vars]
        bound = dict(zip(axes, values, strict=True))
        places = [substitute(index, bound) for index in store.indices]
        conditions = [condition, *([] if inside is None else [substitute(inside, bound)])]
        self._check_lanes(places, conditions, count)
        steps = [
            0 if inner is None else step_of(value, inner) or 0 for value in realize.iter_values
        ]
        elements = [
            substitute(
                store.value.value,
                {axis: axis + step * n for axis, step in zip(axes, steps, strict=True) if step},
            )
            for n in range(count)
        ]
        body = Body(self.output, self.own, self.results, elements, list(store.indices))
        made = body.statement
        if inside is not None:
            made = tirx.IfThenElse(inside, made, None)
        allocated = body.registers
        known = {each: each for each in (*allocated, *_stored(made), *buffers([made]))}
        bare = SBlock(block.iter_vars, [], [], block.name_hint, made, None, allocated)
        reads, writes = (
            [each for each in regions if not holds(allocated, each.source)]
            for regions in get_sblock_access_region(bare, known)[:2]
        )
        whole = SBlock(block.iter_vars, reads, writes, block.name_hint, made, None, allocated)
        return SBlockRealize(values, condition, whole)

    def _neighbours(self, loop: For, realize: SBlockRealize) -> int:
        """How many neighbouring columns a loop goes over, of nothing else; 1 where it does not."""
        count = constant(loop.extent)
        if loop.thread_binding is not None or count is None or count & (count - 1):
            return 1
        axes = (axis.var for axis in realize.block.iter_vars)
        bound = dict(zip(axes, realize.iter_values, strict=True))
        store = _conditional(realize.block.body)[1]
        *rows, column = (substitute(i, bound) for i in store.indices)
        first = substitute(column, {loop.loop_var: tirx.const(0, "int32")})
        beside = self.analyzer.can_prove_equal(column - first, loop.loop_var)
        return count if beside and not any(depends(row, loop.loop_var) for row in rows) else 1

    def _check_lanes(
        self, places: Sequence[Expr], conditions: Sequence[Expr], count: int
    ) -> None:
        """Refuse elements at places of which lanes side by side do not hold the rest of a group, or
        some of these lanes do not run."""
        lanes = [each.loop_var for each in self.loops if _is_of_lanes(each)]
        found = [v for place in places for v in variables_of(place) if among(v, lanes)]
        if not found or count > self.output.width:
            raise self.refusal("are stored by no lane")
        group = _LaneGroup(self.analyzer, found[0], self.output.width, count)
        *rows, column = places
        if not group.goes_over(column) or not all(group.shares(row) for row in rows):
            raise self.refusal("lie in several waves")
        for each in (part for whole in conditions for part in conjuncts_of(whole)):
            if not is_number(each, 1) and not group.runs_whole(each):
                raise self.refusal(f"are stored under the condition `{line(each)}`")


def _conditional(body: Stmt) -> tuple[Expr | None, Stmt]:
    """The condition under which a block does something, if there is one, and what it does."""
    if isinstance(body, tirx.IfThenElse) and body.else_case is None:
        return body.condition, body.then_case
    return None, body


class _LaneGroup:
    """Lanes side by side that hold `width` columns of a row, `count` neighbours each."""

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

        return tvm_ffi.structural_map(value, ((tirx.FloorMod, tirx.FloorDiv), parted))
