"""Where the elements of a buffer are, by the layout that TIRX declares for it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from b200.report import NotUnderstood

Positions = dict[str, NDArray[np.int64]]


def positions(shape: tuple[int, ...], layout: Any) -> Positions:
    """The position of each element along each of the layout's axes.

    Args:
        shape: of the buffer.
        layout: a `TileLayout`, or a `ComposeLayout` of one, which exchanges blocks by XOR; none for
            row by row.

    Returns:
        An array of `shape` for each axis; `m` is memory, in elements.

    Raises:
        NotUnderstood: another layout.
    """
    if layout is None:
        return {"m": np.arange(prod(shape)).reshape(shape)}
    if type(layout).__name__ == "ComposeLayout":
        found = positions(shape, layout.tile_layout)
        if set(found) != {"m"} or not layout.swizzle_inner:
            raise NotUnderstood(f"the layout {layout}")
        return {"m": swizzled(found["m"], layout)}
    if type(layout).__name__ != "TileLayout" or len(layout.replica):
        raise NotUnderstood(f"the layout {layout}")
    return tiled(shape, layout)


def swizzled(places: NDArray[np.int64], layout: Any) -> NDArray[np.int64]:
    """The low bits of a block's number are combined with higher ones by XOR."""
    block = places >> layout.per_element
    block = block ^ ((block >> layout.atom_len) & ((1 << layout.swizzle_len) - 1))
    inner = places & ((1 << layout.per_element) - 1)
    found: NDArray[np.int64] = (block << layout.per_element) | inner
    return found


def tiled(shape: tuple[int, ...], layout: Any) -> Positions:
    """A `TileLayout`: the row-by-row number of an element, cut into digits, each with a stride."""
    extents = [int(part.extent) for part in layout.shard]
    if prod(extents) != prod(shape):
        raise NotUnderstood(f"the layout {layout} of a buffer of {shape}")
    rest = np.arange(prod(shape)).reshape(shape)
    found: Positions = {}
    for part in reversed(layout.shard):
        digit, rest = rest % int(part.extent), rest // int(part.extent)
        axis = part.axis.name
        found[axis] = found.get(axis, 0) + digit * int(part.stride)
    for axis, start in layout.offset.items():
        name = axis if isinstance(axis, str) else axis.name
        found[name] = found.get(name, np.zeros(shape, np.int64)) + int(start)
    return found
