"""Double buffering: while a tile is computed, the next one is on its way to registers."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.gpu_gemm import vectors
from examples.gpu_gemm.large_tiles import TILE
from examples.gpu_gemm.tile import Tile

# A step loads A, puts A, loads B, puts B, and computes. The computing is that of the turn before.
STAGES = [0, 0, 0, 0, 1]
# Both loads, then the computing, and what has been loaded meanwhile is put into shared memory.
ORDER = [0, 3, 1, 4, 2]


def schedule(sch: Schedule, tile: Tile = TILE) -> None:
    """Copies go through registers by TVM's own annotation, and the loop becomes a pipeline."""
    dealt = vectors.schedule(sch, tile)
    for copy in dealt.copies:
        sch.annotate(copy, "tirx.manifest_shared_memory_local_stage", 1)
    sch.annotate(dealt.step, "software_pipeline_stage", STAGES)
    sch.annotate(dealt.step, "software_pipeline_order", ORDER)
