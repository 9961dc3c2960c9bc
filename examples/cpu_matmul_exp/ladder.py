"""The steps in their order: a step more is a file and a line."""

from __future__ import annotations

from pathlib import Path

from examples.cpu_matmul_exp import (
    exp_fused,
    naive,
    packed,
    products_fused,
    reordered,
    tiled,
    tuned,
    vectorized,
)
from examples.cpu_matmul_exp.step import Step, scheduled
from mfmadsl.backend.cpu.pipeline import CPU_PIPELINE


def ladder(trace: Path = tuned.TRACE) -> tuple[Step, ...]:
    """All steps; `trace` is the file that the tuned one replays."""
    return (
        Step("naive", "loops as they are written down", scheduled(naive.schedule)),
        Step("reordered", "along rows of B and C", scheduled(reordered.schedule)),
        Step("tiled", "32 x 32 x 32 at a time", scheduled(tiled.schedule)),
        Step("exp_fused", "exp of a tile that is in the L1", scheduled(exp_fused.schedule)),
        Step("products_fused", "rows of E are used at once", scheduled(products_fused.schedule)),
        Step("vectorized", "8 x 32 sums in registers", scheduled(vectorized.schedule)),
        Step("tuned", "MetaSchedule", scheduled(lambda sch: tuned.schedule(sch, trace))),
        Step("packed", "panels, a micro-kernel, a polynomial", packed.make, CPU_PIPELINE),
    )
