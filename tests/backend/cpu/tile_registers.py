"""The tile registers of AMX in NumPy, written from the pseudo code of Intel's manual.

Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILEZERO, TDPBF16PS, TDPBSSD,
TILESTORED, TILERELEASE. What raises an exception there (#GP, #UD) raises `TileError` here.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
_NAMES, _ROWS, _ROW_BYTES = 8, 16, 64  # of palette 1


class TileError(Exception):
    """What a CPU answers with an exception."""


class TileRegisters(threading.local):
    """Eight tile registers and their shapes, which each thread has of its own."""

    def __init__(self) -> None:
        self.data = np.zeros((_NAMES, _ROWS, _ROW_BYTES), np.uint8)
        self.shapes: list[tuple[int, int]] | None = None

    def ldtilecfg(self, address: int) -> None:
        told = _memory(address, 64)
        if told[0] > 1 or told[1:16].any() or told[32:48].any() or told[56:].any():
            raise TileError("#GP: a byte of the configuration is reserved, or a row to begin with")
        if told[0] == 0:
            self.release()
            return
        lengths, heights = told[16:32].view(np.uint16), told[48:56]
        if (lengths > _ROW_BYTES).any() or (heights > _ROWS).any():
            raise TileError("#GP: a tile is larger than a register")
        if ((lengths == 0) != (heights == 0)).any():
            raise TileError("#GP: a tile has rows of no bytes, or bytes in no row")
        self.shapes = [(int(h), int(w)) for h, w in zip(heights, lengths, strict=True)]
        self.data[:] = 0

    def release(self) -> None:
        self.shapes = None
        self.data[:] = 0

    def tilezero(self, tile: int) -> None:
        self._shape(tile)
        self.data[tile] = 0

    def tileloadd(self, tile: int, address: int, stride: int) -> None:
        rows, length = self._shape(tile)
        self.data[tile] = 0
        for row in range(rows):
            self.data[tile, row, :length] = _memory(address + row * stride, length)

    def tilestored(self, tile: int, address: int, stride: int) -> None:
        rows, length = self._shape(tile)
        for row in range(rows):
            _memory(address + row * stride, length)[:] = self.data[tile, row, :length]

    def tdpbssd(self, c: int, a: int, b: int) -> None:
        """Four bytes with a sign times four, added; sums of 32 bits wrap around."""
        m, k, n = self._product(c, a, b)
        left = self.data[a, :m, : 4 * k].view(np.int8).astype(np.int64)
        right = self.data[b, :k, : 4 * n].view(np.int8).reshape(k, n, 4).astype(np.int64)
        before = self.data[c, :m, : 4 * n].view(np.int32).astype(np.int64)
        sums = before + left @ right.swapaxes(1, 2).reshape(4 * k, n)
        self._write(c, m, n, sums.astype(np.int32).view(np.uint8))

    def tdpbf16ps(self, c: int, a: int, b: int) -> None:
        """Even and odd pairs are added apart; the two sums, then the one before. Each addition
        rounds to float32, what is too small for a normal number is zero."""
        m, k, n = self._product(c, a, b)
        left = _flushed(_wide(self.data[a, :m, : 4 * k])).reshape(m, k, 2)
        right = _flushed(_wide(self.data[b, :k, : 4 * n])).reshape(k, n, 2)
        sums = np.zeros((m, n, 2))
        with np.errstate(over="ignore", invalid="ignore"):
            for step in range(k):
                # A product of two bfloat16 has 16 bits. The sum is rounded to float64 before, which
                # differs from one rounding only where 53 bits end half way between two float32.
                exact = left[:, None, step] * right[None, step] + sums
                sums = _flushed(exact.astype(np.float32))
            both = _flushed((sums[..., 0] + sums[..., 1]).astype(np.float32))
            before = _flushed(self.data[c, :m, : 4 * n].view(np.float32))
            result = _flushed((before + both).astype(np.float32)).astype(np.float32)
        self._write(c, m, n, result.view(np.uint8))

    def _product(self, c: int, a: int, b: int) -> tuple[int, int, int]:
        """M, doublewords of K, and N."""
        (m, wide), (high, depth), (k, width) = (self._shape(tile) for tile in (c, a, b))
        if len({a, b, c}) < 3 or high != m or width != wide or 4 * k != depth or wide % 4:
            raise TileError("#UD: the shapes are not those of a product of three tiles")
        return m, k, wide // 4

    def _write(self, tile: int, m: int, n: int, rows: Bytes) -> None:
        self.data[tile] = 0
        self.data[tile, :m, : 4 * n] = rows

    def _shape(self, tile: int) -> tuple[int, int]:
        if self.shapes is None or not 0 <= tile < _NAMES or self.shapes[tile] == (0, 0):
            raise TileError(f"#UD: tile {tile} is not configured")
        return self.shapes[tile]

    @property
    def instructions(self) -> Mapping[str, Callable[..., None]]:
        """By the names of LLVM's intrinsics for them."""
        return {
            "llvm.x86.ldtilecfg": self.ldtilecfg,
            "llvm.x86.tilerelease": self.release,
            "llvm.x86.tilezero": self.tilezero,
            "llvm.x86.tileloadd64": self.tileloadd,
            "llvm.x86.tilestored64": self.tilestored,
            "llvm.x86.tdpbssd": self.tdpbssd,
            "llvm.x86.tdpbf16ps": self.tdpbf16ps,
        }


def _memory(address: int, count: int) -> Bytes:
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(address))


def _wide(rows: Bytes) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = np.ascontiguousarray(rows).view(ml_dtypes.bfloat16)
    return numbers.astype(np.float64)


def _flushed(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """As float64, with what float32 holds as a subnormal number only as zero."""
    wide = numbers.astype(np.float64)
    return np.where(np.abs(wide) < np.finfo(np.float32).tiny, np.copysign(0.0, wide), wide)
