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
from mfmadsl.schedule.product.row_statistics import MOST_ROWS, row_statistics
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products

_COLUMNS = 256  # of C for each compute unit, up to which it is worth it


def fuse_norms(module: tvm.IRModule, target: Target, apart: dict[str, str]) -> tvm.IRModule:
    """The module with each product and what normalises its rows as one PrimFunc.

    Those are left apart of which `gemm_schedule` would not make a kernel together, rows that are
    more than a few or an unknown number, and products of very many columns; `apart` gets the
    reasons.
    """
    chip = ARCHITECTURES.get(str(target.attrs.get("mcpu", "")))
    if chip is None:
        return module
    return join(module, target, _Norms(_COLUMNS * chip.compute_units), apart)


@dataclass(frozen=True)
class _Norms(JoinRule):
    most_columns: int

    def takes(self, function: PrimFunc) -> bool:
        return is_product(function)

    def gives(self, function: PrimFunc, only_use: bool) -> bool:
        return only_use and not is_product(function) and any(map(is_sum, nests(function)))

    def refusal(self, joined: PrimFunc) -> str:
        statistics = row_statistics(joined)
        if statistics is None:
            return _no_statistics(joined)
        product = sum_of_products(product_nest(statistics.workload))
        columns = prod(constant(axis.dom.extent) or 0 for axis in product.axes("j"))
        if 0 < columns <= self.most_columns:
            return ""
        return (
            f"the product has {columns or 'a symbol for its'} columns, whose workgroups would all"
            f" normalise the row: up to {self.most_columns} are worth it"
        )


def _no_statistics(joined: PrimFunc) -> str:
    """Why the sums before a product are not made in its kernel."""
    *before, _ = (nest for nest in nests(joined) if is_sum(nest))
    shapes = [region.source.shape for nest in before for region in nest.block.writes]
    counts = [prod(constant(extent) or 0 for extent in shape) for shape in shapes]
    few = f"up to {MOST_ROWS} are normalised in a product's kernel"
    if 0 in counts:
        return f"its number of rows is a symbol: {few}"
    if max(counts, default=0) > MOST_ROWS:
        return f"it has {max(counts)} rows: {few}"
    return "it does not normalise the rows of the product's first factor"
