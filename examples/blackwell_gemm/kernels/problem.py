"""What the ten kernels share: the sizes of a tile, and which problems they refuse."""

from __future__ import annotations

TILE_M, TILE_N, TILE_K = 128, 128, 64
"""A CTA's tile of C, and how much of K it takes at a time."""

HALF_BYTES = 2
"""Of an element of A, B and C."""

SMS = 148
"""Streaming multiprocessors of a B200: a persistent kernel has a CTA for each."""

ROWS_IN_L2 = 8
"""Tiles above each other that a persistent kernel takes before the next column of them."""

LARGEST_INDEX = 2**31 - 1
"""Elements are counted in int32."""


def check_one_tile(kernel: str, M: int, N: int, K: int, *, whole_k: bool = False) -> None:
    """Refuse all but one tile of C; where `whole_k`, also more than one step along K.

    Raises:
        ValueError: a size that the kernel does not handle.
    """
    check(kernel, M, N, K)
    for name, size, tile in (("M", M, TILE_M), ("N", N, TILE_N), ("K", K, TILE_K)):
        if size != tile and (name != "K" or whole_k):
            raise ValueError(f"{kernel} computes one tile: {name} is {tile}, not {size}")


def check(
    kernel: str, M: int, N: int, K: int, *, tile_m: int = TILE_M, tile_n: int = TILE_N
) -> None:
    """Refuse what does not fall into whole tiles.

    Raises:
        ValueError: a size that the kernel does not handle.
    """
    for name, size, tile in (("M", M, tile_m), ("N", N, tile_n), ("K", K, TILE_K)):
        if not isinstance(size, int) or size <= 0 or size % tile:
            raise ValueError(f"{kernel} takes a multiple of {tile} for {name}, not {size!r}")
    for name, rows, columns in (("A", M, K), ("B", N, K), ("C", M, N)):
        if rows * columns > LARGEST_INDEX:
            raise ValueError(
                f"{kernel} counts elements in int32, and {name} has {rows} x {columns} of them"
            )


def check_sms(kernel: str, sms: int, *, cluster: int = 1) -> None:
    """Refuse a number of SMs that is none, or does not fall into whole clusters.

    Raises:
        ValueError: a number of SMs that the kernel does not handle.
    """
    if not isinstance(sms, int) or sms <= 0 or sms % cluster:
        raise ValueError(f"{kernel} takes a positive multiple of {cluster} for `sms`, not {sms!r}")
