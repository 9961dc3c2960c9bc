"""Normalisations of a few rows before a product, in the product's kernel.

Of one token a launch takes longer than adding up the squares of its row in every workgroup, unless
each compute unit has many of these, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc

from mfmadsl.model import ARCHITECTURES
from mfmadsl.passes.tir.expression import constant
from mfmadsl.relax.joined import JoinRule, join
from mfmadsl.relax.prologue import is_product
from mfmadsl.schedule.product.nest import is_sum, nests
from mfmadsl.schedule.product.row_statistics import row_statistics
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products

_COLUMNS = 256  # of C for each compute unit, up to which it is worth it


def fuse_norms(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with each product and what normalises its rows as one PrimFunc.

    Those are left apart of which `gemm_schedule` would not make a kernel together, rows that are
    more than a few or an unknown number, and products of very many columns.
    """
    chip = ARCHITECTURES.get(str(target.attrs.get("mcpu", "")))
    if chip is None:
        return module
    return join(module, target, _Norms(_COLUMNS * chip.compute_units))


@dataclass(frozen=True)
class _Norms(JoinRule):
    most_columns: int

    def takes(self, function: PrimFunc) -> bool:
        return is_product(function)

    def gives(self, function: PrimFunc, only_use: bool) -> bool:
        return only_use and not is_product(function) and any(map(is_sum, nests(function)))

    def is_worth_it(self, joined: PrimFunc) -> bool:
        statistics = row_statistics(joined)
        if statistics is None:
            return False
        product = sum_of_products(product_nest(statistics.workload))
        columns = prod(constant(axis.dom.extent) or 0 for axis in product.axes("j"))
        return 0 < columns <= self.most_columns
