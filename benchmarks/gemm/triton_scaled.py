"""Triton's GEMM of scaled operands (`dot_scaled`), compiled offline for gfx950.

Run as a program, in a process of its own, for Triton brings an LLVM that TVM's must not meet:

    python -m benchmarks.gemm.triton_scaled FOLDER [KIND-SETTING...]

writes FOLDER/KIND-SETTING.s, and .json with LDS bytes and waves, for each setting of each KIND of
elements, or for those named. What lies there already is not compiled again.
"""

from __future__ import annotations

import itertools
import sys
from functools import partial
from pathlib import Path
from typing import Any

import triton
import triton.language as tl

from benchmarks.triton_compile import compiled, keep

KINDS = {"mxfp8": ("e4m3", "e4m3"), "mxfp4": ("e2m1", "e2m1"), "mixed": ("e4m3", "e2m1")}
"""Triton's names of the elements of A and B."""

IN_BYTE = {"e4m3": 1, "e2m1": 2}
POINTERS = {"e4m3": "*fp8e4nv", "e2m1": "*u8"}

TILES = ((256, 256), (256, 128), (128, 256), (128, 128))
DEPTHS = (128, 256)  # of K in a tile, in elements
WAVES = (4, 8)
STAGES = (1, 2, 3)
INSTRUCTIONS = (16, 32)


@triton.jit
def scaled_matmul(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K, dies, group,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    A_KIND: tl.constexpr, B_KIND: tl.constexpr, OF_A: tl.constexpr, OF_B: tl.constexpr,
):  # fmt: skip
    """C = A x B of packed rows along K, each 32 of which have a scale; BK divides K. A byte has
    OF_A elements of A, or OF_B of B.

    The order of tiles is that of `triton_kernels.matmul`.
    """
    tile_rows, tile_columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    tile = tl.program_id(0)
    tile = tile % dies * (tile_rows * tile_columns // dies) + tile // dies
    first = tile // (group * tile_columns) * group
    rows_here = min(tile_rows - first, group)
    place = tile % (group * tile_columns)
    row, column = first + place % rows_here, place // rows_here
    rows = (row * BM + tl.arange(0, BM)) % M
    columns = (column * BN + tl.arange(0, BN)) % N
    a_octets, b_octets = tl.arange(0, BK // OF_A), tl.arange(0, BK // OF_B)
    groups = tl.arange(0, BK // 32)
    a = a_ptr + rows[:, None] * (K // OF_A) + a_octets[None, :]
    b = b_ptr + b_octets[:, None] + columns[None, :] * (K // OF_B)
    a_scale = a_scale_ptr + rows[:, None] * (K // 32) + groups[None, :]
    b_scale = b_scale_ptr + columns[:, None] * (K // 32) + groups[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        total = tl.dot_scaled(
            tl.load(a), tl.load(a_scale), A_KIND, tl.load(b), tl.load(b_scale), B_KIND, total
        )
        a += BK // OF_A
        b += BK // OF_B
        a_scale += BK // 32
        b_scale += BK // 32
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask=mask)


def compile_gemm(kind: str, tile: tuple[int, int], depth: int, waves: int, stages: int,
                 instruction: int) -> Any:  # fmt: skip
    a, b = KINDS[kind]
    constants = {
        "BM": tile[0], "BN": tile[1], "BK": depth, "A_KIND": a, "B_KIND": b,
        "OF_A": IN_BYTE[a], "OF_B": IN_BYTE[b],
    }  # fmt: skip
    signature = {
        "a_ptr": POINTERS[a], "b_ptr": POINTERS[b], "a_scale_ptr": "*u8", "b_scale_ptr": "*u8",
        "c_ptr": "*fp32", **dict.fromkeys(["M", "N", "K", "dies", "group"], "i32"),
    }  # fmt: skip
    options = {"num_warps": waves, "num_stages": stages, "matrix_instr_nonkdim": instruction}
    return compiled(scaled_matmul, "gfx950", signature, constants, options, ("dies", "group"))


def main() -> None:
    folder, named = Path(sys.argv[1]), sys.argv[2:]
    grid = itertools.product(KINDS, TILES, DEPTHS, WAVES, STAGES, INSTRUCTIONS)
    for kind, tile, depth, waves, stages, instruction in grid:
        setting = f"{tile[0]}x{tile[1]}x{depth}-w{waves}-s{stages}-i{instruction}"
        path = folder / f"{kind}-{setting}.json"
        if path.exists() or (named and path.stem not in named):
            continue
        keep(path, partial(compile_gemm, kind, tile, depth, waves, stages, instruction))


if __name__ == "__main__":
    main()
