"""Matrix cores: `mfma_schedule`, whose tiles are TensorIntrins of one instruction."""

from __future__ import annotations

from tvm.s_tir import Schedule

import mfmadsl
from examples.product import Size

INSTRUCTION = "mfma_f32_16x16x4_f32"


def schedule(size: Size, arch: str) -> Schedule:
    """TVM's interface of tensorized schedules, with its default factors and tiles in the LDS."""
    instruction = mfmadsl.find(INSTRUCTION)
    return mfmadsl.Gemm(instruction, arch, size.m, size.n, size.k, shared_scope="shared").schedule()
