"""What a step takes in the profiler's model of the whole chip."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

import mfmadsl
from examples.attention.size import Size
from examples.attention.step import Step


@dataclass(frozen=True)
class Prediction:
    """A step at a size, with all of its kernels.

    `tflops` are those of the products of keys that are not masked, and `work` is how many times as
    many operations the matrix cores do. `limit` is the profiler's word for what takes most of the
    time, `share` of it. Registers are those of a lane, LDS bytes those of a workgroup, of the
    kernel that has most; `spilled` are all registers that went to memory. `far_bytes` come from
    beyond the L2s. `between_bytes` is the memory in which one kernel leaves results for another.
    """

    size: Size
    microseconds: float
    tflops: float
    work: float
    limit: str
    share: float
    kernels: int
    registers: int
    spilled: int
    lds_bytes: int
    far_bytes: float
    between_bytes: int


def predict(step: Step, size: Size) -> Prediction:
    """Build a step and profile it. Raises what `mfmadsl.build` and `mfmadsl.profile` raise."""
    kernel = step.kernel(size)
    chip = mfmadsl.profile(kernel, size.zeros()).on_chip
    chain, operations = list(kernel.chain()), size.operations(step.causal)
    return Prediction(
        size=size,
        microseconds=chip.seconds * 1e6,
        tflops=operations / chip.seconds / 1e12,
        work=chip.flops / operations,
        limit=chip.limit,
        share=chip.shares.get(chip.limit, 0.0),
        kernels=len(chain),
        registers=max(each.registers.vector + each.registers.accumulation for each in chain),
        spilled=sum(each.registers.spilled for each in chain),
        lds_bytes=max(each.lds_bytes for each in chain),
        far_bytes=chip.traffic.beyond,
        between_bytes=sum(
            prod(each.shape) * np.dtype(each.dtype).itemsize for each in kernel.workspaces
        ),
    )
