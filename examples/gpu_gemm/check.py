"""Whether a step computes a product: its machine code runs in the emulator, beside NumPy."""

from __future__ import annotations

from tvm.s_tir import Schedule

import mfmadsl
from examples.product import Size, difference, matrices


def check(sch: Schedule, size: Size, arch: str, dtype: str = "float32") -> str | None:
    """Run a schedule's machine code in the emulator: what is wrong, or None.

    Raises what `mfmadsl.build` and `mfmadsl.emulate` raise.
    """
    a, b, c = matrices(size, dtype)
    mfmadsl.emulate(mfmadsl.build(sch, arch), [a, b, c])
    return difference(a, b, c)
