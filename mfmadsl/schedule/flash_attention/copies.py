"""Dealing the copies of a loop over keys out to the threads of a workgroup."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV

from mfmadsl.model import AttentionTiling
from mfmadsl.passes.tir.annotation import EDGES, MOVING_EDGES, PIPELINE
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.schedule.flash_attention.wave import Cut
from mfmadsl.schedule.matrix_core.stage import GROUP, PIECE, turned_pieces
from mfmadsl.schedule.matrix_core.tile_loops import bind_copy, chunks_along_k


def deal_rows(sch: Schedule, cut: Cut, block: str, size: int) -> LoopRV:
    """A copy of a tile as it lies, of elements of so many bytes; gives the loop over steps."""
    threads = cut.tiling.waves * cut.chip.wave_size
    *_, step, rows, columns = sch.get_loops(sch.get_sblock(block))
    counts = [int(sch.get(loop).extent) for loop in (rows, columns)]
    straight = cut.tiling.stages > 1
    units = chunks_along_k(sch, rows, columns, counts, size, threads, straight)
    bind_copy(sch, units, cut.tiling.waves, cut.chip)
    return step


def deal_reads(sch: Schedule, cut: Cut, suffix: str) -> None:
    """The copies of what scores read for each key."""
    for read in cut.score.reads:
        if read.of_keys:
            deal_rows(sch, cut, f"{read.name}_copy{suffix}", max(1, bits_of(read.dtype) // 8))


def deal_values(sch: Schedule, cut: Cut, block: str, size: int) -> LoopRV:
    """A copy of V, which is turned around unless reads do that; gives the loop over steps."""
    if cut.turns_values:
        return deal_rows(sch, cut, block, size)
    threads = cut.tiling.waves * cut.chip.wave_size
    *_, step, columns, rows = sch.get_loops(sch.get_sblock(block))
    counts = [int(sch.get(loop).extent) for loop in (columns, rows)]
    piece = PIECE // size, GROUP // size
    units = turned_pieces(sch, columns, rows, counts, size, piece, threads, 1, True)
    bind_copy(sch, units, cut.tiling.waves, cut.chip)
    return step


def pipeline_of(tiling: AttentionTiling, keys: Sequence[str]) -> dict[str, int | str]:
    """What the passes are told of a loop over keys, which lie in tiles with these names.

    Nobody looks at scores of keys that are not there: so loads straight into the LDS need not ask
    for each.
    """
    if tiling.stages == 1:
        return {PIPELINE: 1}
    return {PIPELINE: tiling.stages, EDGES: " ".join(keys), MOVING_EDGES: 1}
