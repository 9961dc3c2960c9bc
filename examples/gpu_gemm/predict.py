"""What a step takes on an AMD chip, in the profiler's model of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm.s_tir import Schedule

import mfmadsl
from examples.product import Size
from mfmadsl import Kernel
from mfmadsl.emulator.profiler.main_loop import loop_instructions


@dataclass(frozen=True)
class Prediction:
    """A step at a size.

    `microseconds` are of the whole chip, `rate` is multiply-adds a cycle and compute unit, of all
    that the chip has. `limit` is the profiler's word for what takes most of the time, `share` of
    it; and `waits` what the profiler says of a single compute unit, the most important first.
    Registers are those of a lane, `spilled` those of them that went to memory, and `lds_bytes` is
    shared memory, of a workgroup.
    """

    size: Size
    microseconds: float
    rate: float
    limit: str
    share: float
    waits: tuple[str, ...]
    workgroups: int
    threads: int
    registers: int
    spilled: int
    lds_bytes: int


def predict(sch: Schedule, size: Size, arch: str, dtype: str = "float32") -> Prediction:
    """Build a schedule and profile it. Raises what `mfmadsl.build` and `mfmadsl.profile` raise."""
    kernel = mfmadsl.build(sch, arch)
    # The model's time depends on places, not on values.
    shapes = (size.m, size.k), (size.k, size.n)
    arrays = [np.zeros(shape, dtype) for shape in shapes] + [np.zeros((size.m, size.n), "float32")]
    profile = mfmadsl.profile(kernel, arrays)
    chip = profile.on_chip
    cycles = chip.seconds * chip.clock * 1e6 * chip.product.compute_units
    x, y, z = kernel.grid
    return Prediction(
        size,
        chip.seconds * 1e6,
        size.multiply_adds / cycles,
        chip.limit,
        chip.shares.get(chip.limit, 0.0),
        profile.limits,
        x * y * z,
        kernel.block[0] * kernel.block[1] * kernel.block[2],
        kernel.registers.vector + kernel.registers.accumulation,
        kernel.registers.spilled,
        kernel.lds_bytes,
    )


def main_loop(kernel: Kernel) -> list[str]:
    """The instructions of the loop in which a kernel spends its time, as assembly."""
    return [instruction.text for instruction in loop_instructions(kernel.assembly)]
