"""What is made of pairs of a product's columns, in the product's kernel.

TVM's fusion puts behind a product what reads each element at its own place, and nothing else.
"""

from __future__ import annotations

import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc

from mfmadsl.relax.joined import JoinRule, join
from mfmadsl.relax.prologue import is_product
from mfmadsl.schedule.product.paired_columns import paired_output


def fuse_pairs(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with each product and what is made of pairs of its columns as one PrimFunc.

    Those are left apart of which `gemm_schedule` would not make a kernel together.
    """
    return join(module, target, _Pairs(), {})


class _Pairs(JoinRule):
    def takes(self, function: PrimFunc) -> bool:
        return not is_product(function)

    def gives(self, function: PrimFunc, only_use: bool) -> bool:
        return only_use and is_product(function)

    def refusal(self, joined: PrimFunc) -> str:
        return "" if paired_output(joined) is not None else "it does not pair columns"
