"""Buffers of the kernel, and the parts of them that tile operations name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from b200.layouts import Positions, positions
from b200.machine import Value, Warp
from b200.place import Place
from b200.report import Kind, NotUnderstood

Compute = Callable[[Warp], Value]
Elements = NDArray[np.int64]

SHARED = {"shared", "shared.dyn"}
SCOPES = SHARED | {"global", "local", "tmem"}


def key(var: Any) -> int:
    """What tells one variable of the kernel from another."""
    return hash(var)


def constant(node: Any, what: str) -> int:
    """An extent or an offset that is known before the launch.

    Raises:
        NotUnderstood: it is not.
    """
    if isinstance(node, int):
        return node
    if type(node).__name__ != "IntImm":
        raise NotUnderstood(f"{what} that is no constant: {node}")
    return int(node.value)


@dataclass(frozen=True, eq=False)
class Buffer:
    """A buffer that TIRX declares.

    Attributes:
        key: of its variable.
        name: that the kernel gives it, which may be none.
        dtype: of its elements, as NumPy knows it.
        scope: the memory that it is in.
        shape: in elements.
        start: elements before it, from where its pointer points.
        layout: of TIRX.
    """

    key: int
    name: str
    dtype: str
    scope: str
    shape: tuple[int, ...]
    start: int
    layout: Any

    @cached_property
    def positions(self) -> Positions:
        """Where its elements are."""
        return positions(self.shape, self.layout)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.dtype).itemsize

    @cached_property
    def places(self) -> Elements:
        """Where its elements are, along memory.

        Raises:
            NotUnderstood: they are spread over threads or over tensor memory.
        """
        if set(self.positions) != {"m"}:
            raise NotUnderstood(f"{self} as memory, with the layout {self.layout}")
        return self.positions["m"] + self.start

    def __str__(self) -> str:
        return self.name or f"a {self.dtype} buffer of {self.shape}"


def buffer_of(var: Any) -> Buffer:
    """The buffer that a variable of TIRX stands for.

    Raises:
        NotUnderstood: strides, or a memory or a type that the interpreter does not know.
    """
    kind = var.ty
    scope, dtype = str(kind.storage_scope), str(kind.dtype)
    if scope not in SCOPES:
        raise NotUnderstood(f"the memory {scope} of the buffer {var.name}")
    if len(kind.strides):
        raise NotUnderstood(f"the strides of the buffer {var.name}")
    try:
        np.dtype(dtype)
    except TypeError:
        raise NotUnderstood(f"the type {dtype} of the buffer {var.name}") from None
    shape = tuple(constant(extent, f"an extent of {var.name}") for extent in kind.shape)
    start = constant(kind.elem_offset, f"an offset of {var.name}")
    return Buffer(key(var), str(var.name), dtype, scope, shape, start, kind.layout)


@dataclass(frozen=True, eq=False)
class Region:
    """A box of a buffer; where it begins may differ between threads, its size may not."""

    buffer: Buffer
    minima: tuple[Compute, ...]
    extents: tuple[int, ...]

    @property
    def size(self) -> int:
        """In elements."""
        return prod(self.extents)

    @property
    def squeezed(self) -> tuple[int, ...]:
        """The extents other than 1."""
        return tuple(extent for extent in self.extents if extent != 1)

    def box(self, warp: Warp, place: Place) -> tuple[slice, ...]:
        """The same box for all active threads.

        Raises:
            HaltError: it leaves the buffer, or differs between threads.
        """
        slices = []
        for minimum, extent, length in zip(
            self.minima, self.extents, self.buffer.shape, strict=True
        ):
            first = warp.uniform(minimum(warp), place, f"where the part of {self.buffer} begins")
            self._check(warp, np.array([first]), extent, length, place)
            slices.append(slice(first, first + extent))
        return tuple(slices)

    def of_lanes(self, warp: Warp, places: Elements, place: Place) -> Elements:
        """The elements of each active thread's box, threads x size, out of `places` of the buffer.

        Raises:
            HaltError: a box leaves the buffer.
        """
        lanes = warp.lanes
        index: list[Elements] = []
        for axis, (minimum, extent, length) in enumerate(
            zip(self.minima, self.extents, self.buffer.shape, strict=True)
        ):
            value = minimum(warp)
            first = value[lanes] if isinstance(value, np.ndarray) else np.full(len(lanes), value)
            first = first.astype(np.int64)
            self._check(warp, first, extent, length, place)
            along = (1,) * axis + (extent,) + (1,) * (len(self.extents) - axis - 1)
            index.append(
                first.reshape(-1, *(1,) * len(self.extents)) + np.arange(extent).reshape(1, *along)
            )
        return places[tuple(index)].reshape(len(lanes), -1)

    def _check(self, warp: Warp, first: Elements, extent: int, length: int, place: Place) -> None:
        if (first < 0).any() or (first + extent > length).any():
            raise warp.machine.stop(
                Kind.OUT_OF_BOUNDS,
                f"{self.buffer} has {length} elements along an axis, and {int(first.min())} to "
                f"{int(first.max()) + extent - 1} are meant",
                place,
            )
