"""What makes a loop's tiles unfit for the pipeline: other users, or places that move."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.tirx import AttrStmt, BufferStore, For, IfThenElse, PrimFunc, SeqStmt, Stmt

from mfmadsl.passes.main_loop.analysis.parsed import MainLoop
from mfmadsl.passes.main_loop.analysis.unrolled import store_of
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import depends, loads_of


def check_buffers(main: MainLoop, function: PrimFunc) -> None:
    """The tiles are this loop's alone: nobody else reaches them and sees other contents."""
    tiles = {s.buffer.__chandle__() for s in map(store_of, main.copies)}
    outside: list[str] = []

    def walk(statement: Stmt) -> None:
        if statement.same_as(main.loop):
            return
        if isinstance(statement, BufferStore):
            names = [load.source for load in loads_of(statement.value)] + [statement.buffer]
            outside.extend(b.name for b in names if b.__chandle__() in tiles)
        elif isinstance(statement, SeqStmt):
            for each in statement.seq:
                walk(each)
        elif isinstance(statement, For | AttrStmt):
            walk(statement.body)
        elif isinstance(statement, IfThenElse):
            walk(statement.then_case)
            if statement.else_case is not None:
                walk(statement.else_case)

    walk(function.body)
    if outside:
        raise NotUnderstoodError(f"`{outside[0]}` is used outside of it, too")


def check_places(main: MainLoop, elements: Sequence[Element]) -> None:
    """All iterations use the same places: none reads what an earlier one has left there."""
    variable = main.variable
    for each in elements:
        for guard in each.guards:
            if depends(guard, variable):
                raise NotUnderstoodError(f"it copies in some iterations only, if `{guard}`")
    reads = [load for s in main.steps for r in s.reads for load in loads_of(r.value)]
    places = [(e.buffer, e.place) for e in elements] + [(r.source, r.indices[0]) for r in reads]
    for buffer, place in places:
        if depends(place, variable):
            raise NotUnderstoodError(f"each iteration has other places of `{buffer.name}`: {place}")
