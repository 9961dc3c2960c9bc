"""Whether a step computes a product: its machine code runs under the sanitizer, beside NumPy."""

from __future__ import annotations

import mfmadsl
from examples.mfma_gemm.step import Step
from examples.product import Size, difference, matrices
from mfmadsl import EmulationError, Kernel

SMALL = Size(270, 328, 200)
"""Where every step is run: several tiles along M and N, and edges of all three extents."""


def check(step: Step, size: Size = SMALL) -> str | None:
    """What is wrong with a step's machine code at that size, or None. Raises what `build` does."""
    return wrong_with(step.kernel(size), size, step.b_by_columns)


def wrong_with(kernel: Kernel, size: Size, b_by_columns: bool) -> str | None:
    """What the sanitizer finds in a kernel, or else where its product is not NumPy's.

    The sanitizer runs it as the emulator does, and finds what a chip would not define: two waves
    that meet in the LDS with no barrier between, a register that is used before its load is there.
    """
    a, b, c = matrices(size, "float16", b_by_columns)
    try:
        mfmadsl.sanitize(kernel, [a, b, c])
    except EmulationError as fault:
        return f"the sanitizer finds: {fault}"
    return difference(a, b.T if b_by_columns else b, c)
