"""Results of groups of columns in a scheduled product: what its lanes hold, compared and stored.

A lane holds some neighbours of a row of C, and the lanes beside it those beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx
from tvm.ir import Range
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.analysis import get_sblock_access_region
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferRegion, BufferStore, Expr, For, IterVar, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence
from mfmadsl.passes.tir.expression import (
    among,
    bits_of,
    conjuncts_of,
    constant,
    depends,
    scope_of,
    substitute,
    variables_of,
)
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.gated_body import body_of
from mfmadsl.schedule.matrix_core.group_body import Body, RowPart
from mfmadsl.schedule.matrix_core.group_lanes import LaneGroup
from mfmadsl.schedule.product.added_nest import again
from mfmadsl.schedule.product.column_groups import GroupOutput
from mfmadsl.schedule.product.dataflow import holds
from mfmadsl.schedule.product.nest import buffers, is_number, line, loads

_OCTET = "uint8"
_ROWS = 16  # that a lane compares at once, so that none waits for another


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
    body = mapped(body, (SBlock, lowering.around))
    parameters = [results.get(old, new) for old, new in own.items()]
    return PrimFunc(parameters, body, function.ret_type, attrs=function.attrs)


def _with_innermost(body: Stmt, changed: Callable[[For | tirx.SeqStmt], Stmt | None]) -> Stmt:
    """A statement with others in the place of some of the loops and sequences in it."""
    several: list[For | tirx.SeqStmt] = []
    walk(body, ((For, tirx.SeqStmt), several.append))
    found: dict[int, Stmt] = {}
    inside: set[int] = set()
    # What is raised within one of TVM's maps loses its type. Outer loops come first.
    for each in reversed(several):
        if each.__chandle__() not in inside and (made := changed(each)) is not None:
            found[each.__chandle__()] = made
            if isinstance(each, For) and isinstance(each.body, tirx.SeqStmt):
                inside.add(each.body.__chandle__())
    return mapped(body, ((For, tirx.SeqStmt), lambda each: found.get(each.__chandle__(), each)))


def _as_stored(buffer: Buffer) -> Buffer:
    """The parameter of a result: bytes, where elements have four bits."""
    if bits_of(buffer.dtype) >= 8:
        return buffer
    *rows, columns = buffer.shape
    return tirx.decl_buffer([*rows, tirx.floordiv(columns, 2)], _OCTET, buffer.name)


def _loops(body: Stmt) -> list[For]:
    found: list[For] = []
    walk(body, (For, found.append))
    return found


def _is_of_lanes(loop: For) -> bool:
    """Whether a loop goes over the lanes of a wave."""
    return loop.thread_binding is not None and loop.thread_binding.thread_tag == "threadIdx.x"


def _stored(statement: Stmt) -> list[Buffer]:
    found: list[Buffer] = []
    walk(statement, (BufferStore, lambda store: found.append(store.buffer)))
    return found


@dataclass(frozen=True)
class _StandInStore:
    """A block that stores the stand-in, and the `condition` in it under which it does."""

    realize: SBlockRealize
    store: BufferStore
    condition: Expr | None

    @property
    def conditions(self) -> list[Expr]:
        """All conditions under which it does."""
        whole = [self.realize.predicate, *([] if self.condition is None else [self.condition])]
        return [self.of_loops(part) for each in whole for part in conjuncts_of(each)]

    @property
    def place(self) -> list[Expr]:
        """Where it stores."""
        return [self.of_loops(index) for index in self.store.indices]

    @property
    def value(self) -> Expr:
        """What it would store in its own type."""
        assert isinstance(self.store.value, tirx.Cast)
        return self.of_loops(self.store.value.value)

    def of_loops(self, expression: Expr) -> Expr:
        """An expression of the loops instead of the block's axes."""
        axes = (axis.var for axis in self.realize.block.iter_vars)
        return substitute(expression, dict(zip(axes, self.realize.iter_values, strict=True)))

    def reads_memory_by(self, loop: For) -> bool:
        """Whether it reads an argument at a place that depends on a loop."""
        return any(
            scope_of(load.source) == "global" and depends(load, loop.loop_var)
            for load in loads(self.value)
        )


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
            analyzer.bind(each.loop_var, _range(each))
        return analyzer

    def refusal(self, what: str) -> ScheduleError:
        """The error that refuses a tiling."""
        name, width = self.output.outputs[0].buffer.name, self.output.width
        return ScheduleError(
            f"tiling: {width} neighbouring columns, of which `{name}` is made, {what}: take a wave"
            f" tile of a multiple of {width} columns"
        )

    def stored(self, statement: For | tirx.SeqStmt) -> Stmt | None:
        """What takes the place of loops or a sequence around the block that stores the stand-in."""
        if isinstance(statement, tirx.SeqStmt):
            several = [(each, self._found(each)) for each in statement.seq]
            if not any(found for _, found in several):
                return None
            return tirx.SeqStmt(
                [self._grouped(found, None, None) if found else each for each, found in several]
            )
        inner = statement.body
        if (found := self._found(inner)) is not None:
            if self._goes_over_columns(statement, found):
                return self._grouped(found, statement, None)
            if self._goes_over_rows(statement, found):
                return self._grouped(found, None, statement)
            return again([statement], self._grouped(found, None, None))
        if isinstance(inner, tirx.SeqStmt):
            return self._behind_others(statement, inner)
        if not isinstance(inner, For) or (found := self._found(inner.body)) is None:
            return None
        both = self._goes_over_columns(inner, found) and self._goes_over_rows(statement, found)
        return self._grouped(found, inner, statement) if both else None

    def _behind_others(self, columns: For, sequence: tirx.SeqStmt) -> Stmt | None:
        """What takes the place of a loop over columns in which others compute, before the block,
        what it stores: they do so for all columns first."""
        *before, last = sequence.seq
        found = self._found(last)
        if found is None or not self._goes_over_columns(columns, found):
            return None
        first = again([columns], in_sequence(before))
        return tirx.SeqStmt([first, self._grouped(found, columns, None)])

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

    def _goes_over_columns(self, loop: For, found: _StandInStore) -> bool:
        """Whether a loop goes over neighbouring columns, a power of two, and nothing else."""
        count = constant(loop.extent)
        if loop.thread_binding is not None or count is None or count < 2 or count & (count - 1):
            return False
        *rows, column = found.place
        first = substitute(column, _turn(loop, 0))
        beside = self.analyzer.can_prove_equal(column - first, loop.loop_var)
        return beside and not any(depends(row, loop.loop_var) for row in rows)

    def _goes_over_rows(self, loop: For, found: _StandInStore) -> bool:
        """Whether a loop goes over a few rows that a lane may compare before it stores any."""
        count = constant(loop.extent)
        if loop.thread_binding is not None or count is None or not 2 <= count <= _ROWS:
            return False
        ends = any(depends(each, loop.loop_var) for each in found.conditions)
        # Past the last row there is no memory to be read.
        return not depends(found.place[-1], loop.loop_var) and not (
            ends and found.reads_memory_by(loop)
        )

    def _grouped(self, found: _StandInStore, columns: For | None, rows: For | None) -> Stmt:
        """A block with results instead, of neighbours along one loop and of rows along another."""
        first = _turn(columns, 0)
        conditions = [substitute(each, first) for each in found.conditions]
        count = _count(columns)
        held = min(count, self.output.width)
        self._check_lanes([substitute(each, first) for each in found.place], conditions, held)
        merged = [each.loop_var for each in (columns, rows) if each is not None]
        read = [*found.place, found.value, *conditions]
        used = [v for each in read for v in variables_of(each) if not among(v, merged)]
        around = [each for each in self.loops if among(each.loop_var, used)]
        axes = [
            IterVar(_range(each), Var(f"v_{each.loop_var.name}", each.loop_var.ty), IterVar.DataPar)
            for each in around
        ]
        at: dict[Var, Expr] = {
            each.loop_var: axis.var for each, axis in zip(around, axes, strict=True)
        }
        shared = [each for each in conditions if rows is None or not depends(each, rows.loop_var)]
        own = [each for each in conditions if rows is not None and depends(each, rows.loop_var)]
        lines = []
        for row in range(_count(rows)):
            here = {**at, **_turn(rows, row)}
            start = {**here, **first}
            values = [substitute(found.value, {**here, **_turn(columns, n)}) for n in range(count)]
            *rest, column = [substitute(each, start) for each in found.place]
            under = [substitute(each, start) for each in own]
            for n in range(0, count, held):
                lines.append(RowPart([*rest, column + n], values[n : n + held], under))
        name, bound = str(found.realize.block.name_hint), [each.loop_var for each in around]
        condition = tirx.all(*shared) if shared else tirx.const(True, "bool")
        block = _block(name, axes, body_of(self.output, self.own, self.results, lines))
        return SBlockRealize(bound, condition, block)

    def _check_lanes(self, places: Sequence[Expr], conditions: Sequence[Expr], count: int) -> None:
        """Refuse elements at places of which lanes side by side do not hold the rest of a group, or
        some of these lanes do not run."""
        lanes = [each.loop_var for each in self.loops if _is_of_lanes(each)]
        found = [v for place in places for v in variables_of(place) if among(v, lanes)]
        if not found:
            raise self.refusal("are stored by no lane")
        group = LaneGroup(self.analyzer, found[0], self.output.width, count)
        *rows, column = places
        if not group.goes_over(column) or not all(group.shares(row) for row in rows):
            raise self.refusal("lie in several waves")
        for each in conditions:
            if not is_number(each, 1) and not group.runs_whole(each):
                raise self.refusal(f"are stored under the condition `{line(each)}`")


def _block(name: str, axes: list[IterVar], body: Body) -> SBlock:
    """A block of what a lane does."""
    made, registers = body.statement, body.registers
    known = {each: each for each in (*registers, *_stored(made), *buffers([made]))}
    bare = SBlock(axes, [], [], name, made, None, registers)
    reads, writes = (
        [each for each in regions if not holds(registers, each.source)]
        for regions in get_sblock_access_region(bare, known)[:2]
    )
    return SBlock(axes, reads, writes, name, made, None, registers)


def _range(loop: For) -> Range:
    return Range.from_min_extent(loop.min, loop.extent)


def _turn(loop: For | None, number: int) -> dict[Var, Expr]:
    """The variable of a loop, if there is one, in one of its turns."""
    return {} if loop is None else {loop.loop_var: loop.min + number}


def _count(loop: For | None) -> int:
    return 1 if loop is None else constant(loop.extent) or 1
