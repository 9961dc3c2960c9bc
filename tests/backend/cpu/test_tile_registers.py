"""The emulated tile registers: their products by the pseudo code's loops, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.backend.cpu.tile_registers import TileError, TileRegisters

Array = npt.NDArray[Any]


def shapes(*tiles: tuple[int, int], palette: int = 1) -> Array:
    """The 64 bytes of LDTILECFG for tiles of (rows, bytes of a row)."""
    told = np.zeros(64, np.uint8)
    told[0] = palette
    for tile, (rows, length) in enumerate(tiles):
        told[16 + 2 * tile], told[48 + tile] = length, rows
    return told


def loaded(*tiles: Array) -> TileRegisters:
    """Registers that hold arrays, with rows of another array between those of each."""
    registers = TileRegisters()
    told = shapes(*((len(tile), tile.itemsize * tile.shape[1]) for tile in tiles))
    registers.ldtilecfg(told.ctypes.data)
    for number, tile in enumerate(tiles):
        apart = np.zeros((2 * len(tile), tile.shape[1]), tile.dtype)
        apart[::2] = tile
        registers.tileloadd(number, apart.ctypes.data, apart.strides[0] * 2)
    return registers


def stored(registers: TileRegisters, like: Array) -> Array:
    found = np.full_like(like, 7)
    registers.tilestored(0, found.ctypes.data, found.strides[0])
    return found


@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (3, 5, 7), (1, 1, 1)])
def test_a_product_of_bytes(m: int, k: int, n: int) -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(-128, 128, (m, 4 * k)), draw.integers(-128, 128, (k, 4 * n))
    c = draw.integers(-(2**31), 2**31, (m, n))
    registers = loaded(c.astype(np.int32), a.astype(np.int8), b.astype(np.int8))
    registers.tdpbssd(0, 1, 2)
    for i in range(m):
        for j in range(n):
            for step in range(k):
                c[i, j] += sum(a[i, 4 * step + byte] * b[step, 4 * j + byte] for byte in range(4))
    np.testing.assert_array_equal(stored(registers, c.astype(np.int32)), c.astype(np.int32))


def test_a_product_of_bfloats_adds_even_and_odd_ones_apart() -> None:
    """Of 2^24, 1 and -2^24 the order of additions decides what is left."""
    a = np.array([[2.0**24, 1, 1, 1, -(2.0**24), 1]], ml_dtypes.bfloat16)
    registers = loaded(np.zeros((1, 1), np.float32), a, np.ones((3, 2), ml_dtypes.bfloat16))
    registers.tdpbf16ps(0, 1, 2)
    assert stored(registers, np.zeros((1, 1), np.float32)) == 3


def test_what_is_subnormal_is_zero() -> None:
    tiny = np.array([[2.0**-126, 2.0**-130]], ml_dtypes.bfloat16)
    registers = loaded(
        np.full((1, 2), 2.0**-130, np.float32), tiny, np.ones((1, 4), ml_dtypes.bfloat16)
    )
    registers.tdpbf16ps(0, 1, 2)
    assert stored(registers, np.zeros((1, 2), np.float32)).tolist() == [[2.0**-126] * 2]


@pytest.mark.parametrize(
    "told",
    [
        shapes((16, 64), palette=2), shapes((17, 64)), shapes((16, 65)), shapes((16, 0)),
        np.arange(64, dtype=np.uint8),
    ],
)  # fmt: skip
def test_shapes_that_a_cpu_refuses(told: Array) -> None:
    with pytest.raises(TileError, match="#GP"):
        TileRegisters().ldtilecfg(told.ctypes.data)


def test_tiles_that_are_not_there_and_products_that_do_not_fit() -> None:
    with pytest.raises(TileError, match="tile 0 is not configured"):
        TileRegisters().tilezero(0)
    registers = TileRegisters()
    registers.ldtilecfg(shapes((16, 64), (16, 64), (15, 64)).ctypes.data)
    for tiles in ((0, 1, 2), (0, 0, 1)):
        with pytest.raises(TileError, match="#UD: the shapes"):
            registers.tdpbssd(*tiles)
    registers.tilezero(0)
    registers.release()
    with pytest.raises(TileError, match="tile 0 is not configured"):
        registers.tilezero(0)
