"""Products that have a schedule of their own: of described operands, scaled blocks, and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tvm.s_tir import Schedule

from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.matrix_core.block_scaled import block_scaled_schedule
from mfmadsl.schedule.matrix_core.block_scaled_tiling import block_scaled_tilings
from mfmadsl.schedule.matrix_core.described import described_schedule, described_tilings
from mfmadsl.schedule.matrix_core.grouped import grouped_schedule, grouped_tilings
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct
from mfmadsl.schedule.product.described import DescribedProduct
from mfmadsl.schedule.product.grouped import GroupedProduct
from mfmadsl.schedule.product.understood import SpecialProduct


class _Kind(NamedTuple):
    """How a kind of product is scheduled, which tilings it may have, and what it is called."""

    schedule: Callable[[Any, Intrinsic | str | None, Tiling | None, Architecture], Schedule]
    tilings: Callable[[Any, Intrinsic | str | None, Architecture], list[Tiling]]
    name: Callable[[Any], str]


_KINDS: dict[type[SpecialProduct], _Kind] = {
    DescribedProduct: _Kind(described_schedule, described_tilings, lambda p: p.form.kind),
    BlockScaledProduct: _Kind(block_scaled_schedule, block_scaled_tilings, lambda _: "scaled"),
    GroupedProduct: _Kind(grouped_schedule, grouped_tilings, lambda _: "grouped"),
}


def special_schedule(
    product: SpecialProduct, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Schedule:  # fmt: skip
    """What `gemm_schedule` gives for it. Raises ScheduleError as that does."""
    return _KINDS[type(product)].schedule(product, intrinsic, tiling, chip)


def special_tilings(
    product: SpecialProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    return _KINDS[type(product)].tilings(product, intrinsic, chip)


def special_name(product: SpecialProduct) -> str:
    """What is said of its operands, such as `scaled`."""
    return _KINDS[type(product)].name(product)
