"""Arrays as Triton takes tensors: with a type, and a pointer. PyTorch's do as well, on the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import described
from mfmadsl.error import ArgumentError, ArgumentTypeError

Bytes = npt.NDArray[np.uint8]

_TYPES = {
    "bool": "int1", "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16",
    "int32": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64",
    "float16": "float16", "float32": "float32", "float64": "float64", "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5", "float8_e4m3fnuz": "float8e4b8",
    "float8_e5m2fnuz": "float8e5b16",
}  # fmt: skip
"""Triton's names of NumPy's types, and of those of ml_dtypes."""


class Tensor:
    """A NumPy array that a kernel of Triton takes; the kernel writes into that array."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        import triton.language as tl

        if not isinstance(array, np.ndarray):
            raise ArgumentTypeError(f"array: is a NumPy array, not {described(array)}")
        if array.dtype.name not in _TYPES:
            raise ArgumentError(f"array: Triton has no type for {array.dtype.name}")
        if not array.dtype.isnative:
            raise ArgumentError(
                "array: its bytes are in the other order: give `array.astype("
                f"array.dtype.newbyteorder())`, of {array.dtype.name} as the chip has it"
            )
        if any(stride % array.itemsize for stride in array.strides):
            raise ArgumentError(
                f"array: its elements lie {array.strides} bytes apart, which is no multiple of "
                f"their size, {array.itemsize}: give `np.ascontiguousarray(array)`"
            )
        self.array = array
        self.dtype = getattr(tl, _TYPES[array.dtype.name])

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self.array.shape

    def stride(self, axis: int | None = None) -> Any:
        """Elements from one to the next along an axis, or along all of them."""
        strides = tuple(each // self.array.itemsize for each in self.array.strides)
        return strides if axis is None else strides[axis]

    def numel(self) -> int:
        """How many elements there are."""
        return self.array.size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.array.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.array.ctypes.data)

    # What `triton.autotune` asks of an argument that it resets or restores.

    def zero_(self) -> Tensor:
        """Zeros in all of the array."""
        self.array[...] = 0
        return self

    def clone(self) -> Tensor:
        """A tensor with a copy of the array."""
        return Tensor(self.array.copy())

    def copy_(self, other: Tensor) -> Tensor:
        """The array has what another one has."""
        self.array[...] = other.array
        return self


def tensor(array: npt.NDArray[Any]) -> Tensor:
    """An array as Triton takes it. Raises ArgumentError for a type that Triton has not."""
    return Tensor(array)


@dataclass(frozen=True)
class HostMemory:
    """Bytes of this process that a pointer may reach, `size` of them from an address on."""

    address: int
    size: int
    read_only: bool = False

    @property
    def content(self) -> Bytes:
        """The memory itself."""
        if not self.size:
            return np.zeros(0, np.uint8)
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.address))


def memory_of(name: str, value: Any) -> HostMemory:
    """All memory of what a kernel is given a pointer to: a tensor of PyTorch's has its storage, a
    view of an array the whole array.

    Raises ArgumentError where that is not told, or lies on another device.
    """
    if isinstance(value, Tensor):
        whole = value.array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        low, high = np.lib.array_utils.byte_bounds(whole)
        return HostMemory(int(low), int(high - low), not value.array.flags.writeable)
    if not hasattr(value, "untyped_storage"):
        raise ArgumentError(
            f"{name}: a pointer of {type(value).__name__}, which does not tell its memory: give "
            "`mfmadsl.triton.tensor(array)`, or a tensor of PyTorch's"
        )
    place = getattr(value.device, "type", "cpu")
    if place != "cpu":
        raise ArgumentError(f"{name}: is a tensor on {place}: the emulator reaches the CPU's")
    storage = value.untyped_storage()
    return HostMemory(int(storage.data_ptr()), int(storage.nbytes()))


def without_overlaps(memories: Sequence[HostMemory]) -> list[HostMemory]:
    """The same bytes, those that overlap or touch as one, in the order of their addresses."""
    found: list[HostMemory] = []
    for each in sorted(memories, key=lambda memory: memory.address):
        last = found[-1] if found else None
        if last is not None and each.address <= last.address + last.size:
            end = max(last.address + last.size, each.address + each.size)
            read_only = last.read_only and each.read_only
            found[-1] = HostMemory(last.address, end - last.address, read_only)
        else:
            found.append(each)
    return found
