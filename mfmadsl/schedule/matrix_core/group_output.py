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
from mfmadsl.schedule.matrix_core.group_lanes import LaneGroup
from mfmadsl.schedule.product.added_nest import again
from mfmadsl.schedule.product.dataflow import holds
from mfmadsl.schedule.product.group_output import GroupOutput
from mfmadsl.schedule.product.nest import buffers, is_number, line

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


def _with_innermost(body: Stmt, changed: Callable[[For | tirx.SeqStmt], Stmt | None]) -> Stmt:
    """A statement with others in the place of some of the loops and sequences in it."""
    several: list[For | tirx.SeqStmt] = []
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
    return tirx.decl_buffer([*rows, tirx.floordiv(columns, 2)], _OCTET, buffer.name)


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
class _StandInStore:
    """A block that stores the stand-in, and the `condition` in it under which it does."""

    realize: SBlockRealize
    store: BufferStore
    condition: Expr | None

    @property
    def axes(self) -> list[Var]:
        """The block's variables."""
        return [axis.var for axis in self.realize.block.iter_vars]

    def at(self, values: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
        """(the place, the conditions within the block) where its axes have such values."""
        bound = dict(zip(self.axes, values, strict=True))
        inside = [] if self.condition is None else [substitute(self.condition, bound)]
        return [substitute(index, bound) for index in self.store.indices], inside


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

    def stored(self, statement: For | tirx.SeqStmt) -> Stmt | None:
        """What takes the place of a loop or sequence around the block that stores the stand-in."""
        if isinstance(statement, tirx.SeqStmt):
            several = [(each, self._found(each)) for each in statement.seq]
            if not any(found for _, found in several):
                return None
            return tirx.SeqStmt(
                [self._grouped(found, None, 1) if found else each for each, found in several]
            )
        found = self._found(statement.body)
        if found is None:
            return None
        count = self._neighbours(statement, found)
        if count > 1:
            return self._grouped(found, statement.loop_var, count)
        return again([statement], self._grouped(found, None, 1))

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

    def _found(self, statement: Stmt) -> _StandInStore | None:
        """The block, if a statement is the one that stores the stand-in."""
        if not isinstance(statement, SBlockRealize):
            return None
        body = statement.block.body
        condition = None
        if isinstance(body, tirx.IfThenElse) and body.else_case is None:
            condition, body = body.condition, body.then_case
        if not isinstance(body, BufferStore) or not body.buffer.same_as(self.stand_in):
            return None
        return _StandInStore(statement, body, condition)

    def _neighbours(self, loop: For, found: _StandInStore) -> int:
        """How many neighbouring columns a loop goes over, of nothing else; 1 where it does not."""
        count = constant(loop.extent)
        if loop.thread_binding is not None or count is None or count & (count - 1):
            return 1
        (*rows, column), _ = found.at(found.realize.iter_values)
        first = substitute(column, {loop.loop_var: tirx.const(0, "int32")})
        beside = self.analyzer.can_prove_equal(column - first, loop.loop_var)
        return count if beside and not any(depends(row, loop.loop_var) for row in rows) else 1

    def _grouped(self, found: _StandInStore, inner: Var | None, count: int) -> Stmt:
        """The block with results instead, of `count` neighbours along a loop `inner`."""
        realize, block = found.realize, found.realize.block
        first = {} if inner is None else {inner: tirx.const(0, "int32")}
        values = [substitute(value, first) for value in realize.iter_values]
        condition = substitute(realize.predicate, first)
        places, inside = found.at(values)
        self._check_lanes(places, [condition, *inside], count)
        elements = [self._element(found, inner, n) for n in range(count)]
        body = Body(self.output, self.own, self.results, elements, list(found.store.indices))
        made = body.statement
        if found.condition is not None:
            made = tirx.IfThenElse(found.condition, made, None)
        registers = body.registers
        known = {each: each for each in (*registers, *_stored(made), *buffers([made]))}
        bare = SBlock(block.iter_vars, [], [], block.name_hint, made, None, registers)
        reads, writes = (
            [each for each in regions if not holds(registers, each.source)]
            for regions in get_sblock_access_region(bare, known)[:2]
        )
        whole = SBlock(block.iter_vars, reads, writes, block.name_hint, made, None, registers)
        return SBlockRealize(values, condition, whole)

    def _element(self, found: _StandInStore, inner: Var | None, number: int) -> Expr:
        """What the block stores at a number of its inner loop, of axes that are there at 0."""
        assert isinstance(found.store.value, tirx.Cast)
        value = found.store.value.value
        if inner is None:
            return value
        moved: dict[Var, Expr] = {}
        for axis, place in zip(found.axes, found.realize.iter_values, strict=True):
            step = step_of(place, inner)
            if step is None:
                raise self.refusal(f"are stored by a loop that `{line(place)}` does not follow")
            moved[axis] = axis + step * number
        return substitute(value, moved)

    def _check_lanes(self, places: Sequence[Expr], conditions: Sequence[Expr], count: int) -> None:
        """Refuse elements at places of which lanes side by side do not hold the rest of a group, or
        some of these lanes do not run."""
        lanes = [each.loop_var for each in self.loops if _is_of_lanes(each)]
        found = [v for place in places for v in variables_of(place) if among(v, lanes)]
        if not found or count > self.output.width:
            raise self.refusal("are stored by no lane")
        group = LaneGroup(self.analyzer, found[0], self.output.width, count)
        *rows, column = places
        if not group.goes_over(column) or not all(group.shares(row) for row in rows):
            raise self.refusal("lie in several waves")
        for each in (part for whole in conditions for part in conjuncts_of(whole)):
            if not is_number(each, 1) and not group.runs_whole(each):
                raise self.refusal(f"are stored under the condition `{line(each)}`")
