"""What catches a mutant of a kernel."""

from __future__ import annotations

import numpy as np

from mfmadsl.backend import Kernel
from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.gemm import Gemm
from mfmadsl.language import find
from tests.emulator.sanitizer.mutants import Mutant

BUDGET = 20_000


def problem(k: int = 128) -> tuple[Gemm, Kernel]:
    """At k = 128 the kernel is straight, at 512 it has a loop."""
    gemm = Gemm(find("mfma_f32_16x16x16_f16"), "gfx942", 128, 128, k, shared_scope="shared")
    return gemm, gemm.build()


def verdict(gemm: Gemm, mutant: Mutant, right: np.ndarray) -> str:
    """What catches a mutant: a fault's kind, `wrong result`, or nothing: then `harmless`."""
    a, b, c = gemm.operands()
    try:
        sanitize(mutant, [a, b, c], budget=BUDGET)
    except EmulationError as error:
        return error.fault.kind
    if not np.array_equal(c, right, equal_nan=True):
        return "wrong result"
    return "harmless"
