"""Which product a function has: scaled, sparse, of scaled blocks, of groups, or a plain one."""

from __future__ import annotations

from typing import TypeAlias

from tvm.tirx import PrimFunc

from mfmadsl.model import Architecture
from mfmadsl.passes.tir.annotation import REMARK
from mfmadsl.schedule.product.as_bytes import as_bytes
from mfmadsl.schedule.product.block_scaled import (
    FLOATS,
    BlockScaledProduct,
    NoBlocks,
    block_scaled_product,
    is_multiplied,
)
from mfmadsl.schedule.product.dequantised import dequantised, is_dequantised
from mfmadsl.schedule.product.described import DescribedProduct, described_product
from mfmadsl.schedule.product.grouped import GroupedProduct, grouped_product
from mfmadsl.schedule.product.index_type import in_32_bits
from mfmadsl.schedule.product.scaled_groups import NARROW, ScaledGroups, scaled_groups
from mfmadsl.schedule.product.scaled_sum import SCALE

_OCTET = "uint8"  # of scales, of an index, and of packed elements


SpecialProduct: TypeAlias = DescribedProduct | BlockScaledProduct | GroupedProduct | ScaledGroups
Understood: TypeAlias = SpecialProduct | PrimFunc


def understood(function: PrimFunc, chip: Architecture) -> Understood:
    """The scaled or sparse product that a function has, that of scaled blocks or of groups, or a
    function with a plain one.

    A scaled product is a plain one of other types where the chip has no instructions for it.

    Raises ScheduleError, with the name of the block, for one that only looks like it.
    """
    types = {str(parameter.dtype) for parameter in function.params if hasattr(parameter, "dtype")}
    scaled = scaled_groups(in_32_bits(function)) if types & (FLOATS | NARROW) else None
    if isinstance(scaled, ScaledGroups) and is_multiplied(scaled.scaled.types, chip):
        return scaled
    if scaled is not None:
        inner = scaled.scaled if isinstance(scaled, ScaledGroups) else scaled
        function = _converted(function, inner, chip)
    if (grouped := grouped_product(function)) is not None:
        return grouped
    # Most functions have none of these types: the library is not searched for them.
    if types & {SCALE, _OCTET}:
        product = described_product(as_bytes(in_32_bits(function), chip.name))
        if product is not None:
            return dequantised(product, chip) if is_dequantised(product, chip) else product
    found = block_scaled_product(in_32_bits(function)) if types & FLOATS else None
    if isinstance(found, BlockScaledProduct) and is_multiplied(found.types, chip):
        return found
    if found is None:
        return function
    return _converted(function, found, chip)


def _converted(
    function: PrimFunc, found: BlockScaledProduct | NoBlocks, chip: Architecture
) -> PrimFunc:
    """The function as one with a product of float32, which its blocks before that compute.

    Raises ScheduleError if there are none.
    """
    reason = _unfit(found, chip)
    if not found.inside:
        raise found.nest.refusal(f"{reason}: compute its factors in blocks before it")
    said = f"block `{found.nest.name}` {reason}: A and B become float32 on their way to the LDS"
    return function.with_attr(REMARK, said)


def _unfit(found: BlockScaledProduct | NoBlocks, chip: Architecture) -> str:
    """Why a sum is no product of scaled blocks of a chip."""
    if isinstance(found, NoBlocks):
        return found.reason
    types = " and ".join(dict.fromkeys(found.types))
    return f"multiplies {types}, for which {chip.name} has no matrix instructions"
