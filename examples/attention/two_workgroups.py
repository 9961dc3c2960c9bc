"""Two workgroups: with fewer registers for each wave, two have room on a compute unit.

Steps have half as many keys, or loads go past the registers, where the chip has such.

What a wave waits for, the waves of the other workgroup fill. This is the kernel of
`mfmadsl.attention_schedule`.
"""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.attention import skewed
from examples.attention.kernel import FEW_REGISTERS, cut_of, scheduled
from examples.attention.size import Size


def schedule(size: Size, arch: str) -> Schedule:
    """The loop of the step before, with another tiling."""
    return scheduled(cut_of(size, FEW_REGISTERS[arch], arch), skewed.body)
