"""Queries of several batches one behind the other, as those of a batch: so a kernel knows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import tirx
from tvm.tirx import Buffer, Expr

from mfmadsl.passes.tir.expression import depends
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.described import Attention, Axis, PackedQueries, at_places
from mfmadsl.schedule.product.nest import same


def unpacked(
    found: Attention, batch: Axis, starts: Buffer, rows: Sequence[Expr],
    refused: Callable[[str], ScheduleError],
) -> Attention:  # fmt: skip
    """An attention whose queries are those of a batch, of one with all rows and their `batch`.

    `rows` are those that it has the batch of. Raises ScheduleError where they are not its own.
    """
    row = found.axes.row
    if any(not same(each, row.var) for each in rows):
        raise refused("has the batch of another row than its own")
    if any(depends(each, row.var) for each in (found.k, found.v)):
        raise refused("has other keys for each query of a batch")
    first, count, own = (tirx.Var(name, "int32") for name in ("first_row", "own_rows", "own_row"))
    moved = {row.var: first + own}
    results = [replace(each, store=at_places(each.store, moved)) for each in found.results]
    return replace(
        found, axes=replace(found.axes, row=Axis(own, count)), q=at_places(found.q, moved),
        score=at_places(found.score, moved), results=tuple(results),
        packed=PackedQueries(batch, starts, first, row.extent),
    )  # fmt: skip
