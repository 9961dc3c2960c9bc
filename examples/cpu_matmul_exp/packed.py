"""Packed: B in panels that the registers read one after the other, and exp a polynomial."""

from __future__ import annotations

import tvm

from examples.cpu_matmul_exp.chain import Size, loops
from mfmadsl import schedule_cpu_gemm


def make(size: Size) -> tvm.IRModule:
    """Both products over a micro-kernel of the library, which is chosen by size and CPU.

    exp is folded into the store of the first product's tile, as `exp_fused` has it; the passes for
    CPUs make a polynomial of it.
    """
    sch = loops(size)
    for product in ("P", "F"):
        schedule_cpu_gemm(sch, sch.get_sblock(product))
    return sch.mod
