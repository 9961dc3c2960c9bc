"""The whole of it: `gemm_schedule`, which chooses tiles, and that the passes make fast."""

from __future__ import annotations

from tvm.s_tir import Schedule

import mfmadsl
from examples.product import Size


def schedule(size: Size, arch: str, dtype: str = "float32") -> Schedule:
    """Swizzles, k-packing, loads under matrix instructions, the dies' order."""
    workload = mfmadsl.matmul(size.m, size.n, size.k, dtype, "float32")
    return mfmadsl.gemm_schedule(workload, arch=arch)


def halves(size: Size, arch: str) -> Schedule:
    """The same of A and B in float16, sums still in float32: what matrix cores are for."""
    return schedule(size, arch, "float16")
