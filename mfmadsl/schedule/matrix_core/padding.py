"""Extents of a product that are rounded up to whole tiles."""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.argument import LARGEST_EXTENT
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.plain import PlainProduct


def check_padded(product: PlainProduct, tiles: Sequence[int]) -> None:
    """Raise ScheduleError where whole tiles of s, i, j or k are more than a loop counts."""
    a, b, c = (f"`{name}`" for name in product.names)
    having = (f"{a}, {b} and {c}", f"{a} and {c}", f"{b} and {c}", f"{a} and {b}")
    for those, extent, tile in zip(having, product.extents, tiles, strict=True):
        if isinstance(extent, int) and (padded := -(-extent // tile) * tile) > LARGEST_EXTENT:
            raise ScheduleError(
                f"workload: an extent of {those} is {extent}, which whole tiles of {tile} make "
                f"{padded}, and loops count up to {LARGEST_EXTENT}: make it smaller, or give "
                "smaller tiles"
            )
