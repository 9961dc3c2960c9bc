"""Sums that vector instructions add to, computed where they stand.

LLVM sees no need for such a sum before the iteration ends. It would add to all of them there, and
the products of a whole iteration would wait for it in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm import tirx
from tvm.tirx import BufferStore

from mfmadsl.passes.main_loop.analysis.element_wise import Statement
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import constant, ramp

_TOGETHER = 4
"""Sums that are neighbours in the layout of every tile: LLVM may add two of them at once."""


def placed_sums(statements: Sequence[Statement]) -> Iterator[BufferStore]:
    """The statements of a register step, with what keeps sums of float32 where they are added to.

    It stands behind each four of them that are neighbours.
    """
    run: list[Statement] = []
    for statement in statements:
        yield statement.store
        if not _continues(run, statement):
            run = []
        if _continues(run, statement):
            run = [*run, statement]
        if len(run) == _TOGETHER:
            sums = run[0].store
            place = ramp(sums.indices[0], _TOGETHER)
            loaded = tirx.BufferLoad(sums.buffer, [place])
            yield BufferStore(sums.buffer, device.placed(loaded), [place])
            run = []


def _continues(run: Sequence[Statement], statement: Statement) -> bool:
    """Whether a statement adds to the sum behind those of a run, or to the first of four."""
    store = statement.store
    place = constant(store.indices[0])
    if statement.is_matrix or place is None or str(store.buffer.dtype) != "float32":
        return False
    if not statement.writes <= statement.reads:
        return False
    if not run:
        return place % _TOGETHER == 0
    last = run[-1].store
    return store.buffer.same_as(last.buffer) and place == (constant(last.indices[0]) or 0) + 1
