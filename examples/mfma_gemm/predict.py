"""What a step takes in the profiler's model, of a compute unit and of the whole chip."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

import mfmadsl
from examples.mfma_gemm.step import Step
from examples.product import Size


@dataclass(frozen=True)
class Prediction:
    """A step at a size.

    `microseconds` and `tflops` are of the whole chip, at the clock that its power allows. `rate` is
    multiply-adds a cycle of that clock and compute unit, and `alone` those of one compute unit
    whose loads all hit the L2. `limit` is the profiler's word for what
    takes most of the chip's time, `share` of it, and `waits` what it says of one compute unit, the
    most important first. Registers are those of a lane, `spilled` those of them that went to
    memory, `lds_bytes` is of a workgroup, and `resident` workgroups fit into a compute unit at
    once. `conflicts` are cycles in which the LDS answers a wave later than without bank conflicts,
    of `lds_cycles` in all. `far_bytes` is what comes from beyond the L2s.
    """

    size: Size
    microseconds: float
    tflops: float
    rate: float
    alone: float
    limit: str
    share: float
    waits: tuple[str, ...]
    workgroups: int
    threads: int
    resident: int
    registers: int
    spilled: int
    lds_bytes: int
    lds_cycles: int
    conflicts: int
    far_bytes: float


def predict(step: Step, size: Size) -> Prediction:
    """Build a step and profile it. Raises what `mfmadsl.build` and `mfmadsl.profile` raise."""
    kernel = step.kernel(size)
    # The model's time depends on places, not on values.
    b = (size.n, size.k) if step.b_by_columns else (size.k, size.n)
    arrays = [np.zeros(shape, "float16") for shape in ((size.m, size.k), b)]
    profile = mfmadsl.profile(kernel, [*arrays, np.zeros((size.m, size.n), "float32")])
    chip, groups = profile.on_chip, prod(kernel.grid)
    return Prediction(
        size=size,
        microseconds=chip.seconds * 1e6,
        tflops=2 * size.multiply_adds / chip.seconds / 1e12,
        rate=size.multiply_adds / (chip.cycles * chip.product.compute_units),
        alone=size.multiply_adds * profile.workgroups / groups / profile.timing.cycles,
        limit=chip.limit,
        share=chip.shares.get(chip.limit, 0.0),
        waits=profile.limits,
        workgroups=groups,
        threads=prod(kernel.block),
        resident=profile.occupancy.groups,
        registers=kernel.registers.vector + kernel.registers.accumulation,
        spilled=kernel.registers.spilled,
        lds_bytes=kernel.lds_bytes,
        lds_cycles=profile.whole.lds_cycles,
        conflicts=profile.whole.lds_conflict_cycles,
        far_bytes=chip.traffic.beyond,
    )
