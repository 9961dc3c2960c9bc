"""What the passes are told of a loop over steps along K."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV

from mfmadsl.model import DEFAULT_OVERLAP, Architecture, Tiling
from mfmadsl.passes.tir.annotation import (
    DIES,
    EDGES,
    GROUP,
    OVERLAP,
    PIPELINE,
    SWIZZLE,
    WORKGROUPS,
)


def annotate_loop(
    sch: Schedule, k_step: LoopRV, tiling: Tiling, chip: Architecture, padded: Sequence[str]
) -> None:
    """Annotate the loop with its tiling; rows past the edges of `padded` tiles may hold anything,
    because those of C that they make are not stored."""
    if padded:
        sch.annotate(k_step, EDGES, " ".join(padded))
    sch.annotate(k_step, PIPELINE, tiling.stages)
    if tiling.overlap != DEFAULT_OVERLAP:
        sch.annotate(k_step, OVERLAP, tiling.overlap)
    if not tiling.swizzle:
        sch.annotate(k_step, SWIZZLE, 0)
    sch.annotate(k_step, GROUP, tiling.group)
    if chip.dies > 1:
        sch.annotate(k_step, DIES, chip.dies)
    if tiling.persistent:
        sch.annotate(k_step, WORKGROUPS, chip.compute_units)
