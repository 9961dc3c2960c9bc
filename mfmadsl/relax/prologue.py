"""Weights that are dequantised before a product: computed on the way into the LDS, in its kernel.

TVM's fusion puts element-wise functions behind a product, and never before it, where each of its
tiles computes them anew. Of those that read fewer bytes than they write that is the better way:
the weights come from memory as they are stored, and nothing is written back.
"""

from __future__ import annotations

import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc, Var

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.relax.joined import JoinRule, join
from mfmadsl.schedule import ScheduleError
from mfmadsl.schedule.product.dataflow import accesses, check_element_wise
from mfmadsl.schedule.product.nest import loads, nests
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products


def fuse_dequantised(module: tvm.IRModule, target: Target, apart: dict[str, str]) -> tvm.IRModule:
    """The module with each product and what dequantises its factors as one PrimFunc.

    Those are left apart of which `gemm_schedule` would not make a kernel together; `apart` gets the
    reasons.
    """
    return join(module, target, _Dequantised(), apart)


class _Dequantised(JoinRule):
    def takes(self, function: PrimFunc) -> bool:
        return is_product(function)

    def gives(self, function: PrimFunc, only_use: bool) -> bool:
        return dequantises(function)


def is_product(function: PrimFunc) -> bool:
    """Whether one of its blocks is a sum of products, the only one that sums."""
    try:
        sum_of_products(product_nest(function))
    except ScheduleError:
        return False
    return True


def dequantises(function: PrimFunc) -> bool:
    """Whether it computes the elements of one array one by one, of arrays of fewer bytes."""
    every, found = accesses(function), nests(function)
    if len(found) != len(every):
        return False
    try:
        for nest in found:
            check_element_wise(nest)
    except ScheduleError:
        return False
    read_at = [index for nest in found for load in loads(nest.store) for index in load.indices]
    if any(loads(index) for index in read_at):  # as a table is: no loop loads it ahead
        return False
    *sources, result = function.params
    written = [buffer for access in every for buffer in access.writes]
    results = [each for each in function.params if any(each.same_as(b) for b in written)]
    read, made = [_bytes(each) for each in sources], _bytes(result)
    if len(results) != 1 or not results[0].same_as(result) or made is None or None in read:
        return False
    return sum(size for size in read if size is not None) < made


def _bytes(parameter: Var) -> int | None:
    """The bytes of an array; None where they are not known, or it is no array."""
    size = bits_of(getattr(parameter, "dtype", "int8")) // 8
    for extent in getattr(parameter, "shape", [None]):
        number = constant(extent)
        if number is None:
            return None
        size *= number
    return size
