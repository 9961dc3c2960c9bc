"""Products that have a schedule of their own: of described operands, scaled blocks, and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from tvm.s_tir import Schedule

from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.matrix_core.block_scaled import block_scaled_schedule
from mfmadsl.schedule.matrix_core.block_scaled_tiling import block_scaled_tilings
from mfmadsl.schedule.matrix_core.cases import only_tiling
from mfmadsl.schedule.matrix_core.described import described_schedule, described_tilings
from mfmadsl.schedule.matrix_core.group_choice import grouped_cases, grouped_tilings
from mfmadsl.schedule.matrix_core.grouped import grouped_schedule
from mfmadsl.schedule.matrix_core.scaled_groups import (
    scaled_groups_schedule,
    scaled_groups_tilings,
)
from mfmadsl.schedule.matrix_core.tiling.cases import Case
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct
from mfmadsl.schedule.product.described import DescribedProduct
from mfmadsl.schedule.product.grouped import GroupedProduct
from mfmadsl.schedule.product.scaled_groups import ScaledGroups
from mfmadsl.schedule.product.understood import SpecialProduct

Asked: TypeAlias = Tiling | Sequence[Case] | None
"""The tilings that are asked for."""


class _Kind(NamedTuple):
    """What the operands of a product are called, how it is scheduled, and which tilings it has."""

    name: str
    schedule: Callable[[Intrinsic | str | None, Asked, Architecture], Schedule]
    tilings: Callable[[Intrinsic | str | None, Architecture], list[Tiling]]


def _of_one(
    schedule: Callable[[Intrinsic | str | None, Tiling | None, Architecture], Schedule],
) -> Callable[[Intrinsic | str | None, Asked, Architecture], Schedule]:
    """A schedule of a product that takes one tiling."""
    return lambda intrinsic, tiling, chip: schedule(intrinsic, only_tiling(tiling), chip)


def _kind(product: SpecialProduct) -> _Kind:
    """How a product is scheduled."""
    match product:
        case DescribedProduct():
            return _Kind(
                product.form.kind,
                _of_one(partial(described_schedule, product)),
                partial(described_tilings, product),
            )
        case BlockScaledProduct():
            return _Kind(
                "scaled",
                _of_one(partial(block_scaled_schedule, product)),
                partial(block_scaled_tilings, product),
            )
        case GroupedProduct():
            return _Kind(
                "grouped", partial(grouped_schedule, product), partial(grouped_tilings, product)
            )
        case ScaledGroups():
            return _Kind(
                "grouped",
                _of_one(partial(scaled_groups_schedule, product)),
                partial(scaled_groups_tilings, product),
            )


def special_schedule(
    product: SpecialProduct, intrinsic: Intrinsic | str | None, tiling: Asked, chip: Architecture
) -> Schedule:
    """What `gemm_schedule` gives for it. Raises ScheduleError as that does."""
    return _kind(product).schedule(intrinsic, tiling, chip)


def special_tilings(
    product: SpecialProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    return _kind(product).tilings(intrinsic, chip)


def special_cases(
    product: SpecialProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Case]:
    """The tilings that are taken if none are asked for, and up to which extent each is."""
    if isinstance(product, GroupedProduct):
        return grouped_cases(product, intrinsic, None, chip)
    return [Case(special_tilings(product, intrinsic, chip)[0])]


def special_name(product: SpecialProduct) -> str:
    """What is said of its operands, such as `scaled`."""
    return _kind(product).name
