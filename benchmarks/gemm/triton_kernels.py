"""Triton's GEMM, compiled offline: the peer that `benchmarks/gemm` measures against.

Run as a program, in a process of its own, for Triton brings an LLVM that TVM's must not meet:

    python -m benchmarks.gemm.triton_kernels FOLDER CASE...

writes FOLDER/CASE-SETTING.s, and .json with LDS bytes and waves, for each setting of each CASE
(CHIP.TYPE.ORDER). What lies there already is not compiled again. And

    python -m benchmarks.gemm.triton_kernels --time CASE SETTING RUNS

prints the seconds that one of them takes, the best of some runs, nothing of it cached, after
another has warmed it up.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import triton
import triton.language as tl

from benchmarks.triton_compile import compiled, keep

STAGES = (1, 2, 3)
# Of large products: ROW_BYTES are those of A, along K, in a tile.
TILES = ((256, 256), (256, 128), (128, 128))
WAVES = (4, 8)
INSTRUCTIONS = (16, 32)
K_PACKS = (1, 2)
ROW_BYTES = (128, 64)
# Of products with few rows.
LOW_TILES = ((16, 16), (16, 32), (16, 64))
LOW_WAVES = (1, 2, 4)
LOW_ROW_BYTES = (128, 256, 512, 1024, 2048)
ORDER = ("dies", "group")


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_bn, stride_cm, dies, group,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """C = A x B, for a K that BK divides: without masks in the loop, which would cost it.

    Each of `dies`, which divide the number of tiles, has tiles in a row, and `group` rows of tiles
    are gone through together, column by column: what a user does for the L2 caches.
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
    steps = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_am + steps[None, :]
    b = b_ptr + steps[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=ACC)
    for _ in range(tl.cdiv(K, BK)):
        total = tl.dot(tl.load(a), tl.load(b), total, out_dtype=ACC)
        a += BK
        b += BK * stride_bk
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c, total.to(OUT), mask=mask)


@dataclass(frozen=True)
class Setting:
    """What a user of Triton tunes; `row_bytes` is a tile's K in bytes, `instruction` its rows."""

    tile: tuple[int, int]
    row_bytes: int
    waves: int
    stages: int
    instruction: int
    k_pack: int

    def __str__(self) -> str:
        return (
            f"{self.tile[0]}x{self.tile[1]}x{self.row_bytes}B-w{self.waves}-s{self.stages}"
            f"-i{self.instruction}-k{self.k_pack}"
        )

    @classmethod
    def read(cls, name: str) -> Setting:
        """From its `str`."""
        numbers = [int(number) for number in re.findall(r"\d+", name)]
        return cls((numbers[0], numbers[1]), *numbers[2:])


def settings(arch: str) -> Iterator[Setting]:
    """The grids; gfx950 knows no k-packing."""
    packs = K_PACKS if arch == "gfx942" else (1,)
    large = itertools.product(TILES, ROW_BYTES, WAVES, STAGES, INSTRUCTIONS, packs)
    low = itertools.product(LOW_TILES, LOW_ROW_BYTES, LOW_WAVES, STAGES, (16,), (1,))
    for each in itertools.chain(large, low):
        yield Setting(*each)


def compile_gemm(arch: str, kind: str, b_transposed: bool, setting: Setting) -> Any:
    fp8 = "fp8e4b8" if arch == "gfx942" else "fp8e4nv"
    dtype = {"f16": "fp16", "bf16": "bf16", "i8": "i8", "fp8": fp8}[kind]
    accumulator = tl.int32 if kind == "i8" else tl.float32
    out = "i32" if kind == "i8" else "fp32"
    one = "stride_bk" if b_transposed else "stride_bn"
    block_k = setting.row_bytes // (2 if kind in ("f16", "bf16") else 1)
    constants = {
        one: 1, "BM": setting.tile[0], "BN": setting.tile[1], "BK": block_k,
        "ACC": accumulator, "OUT": accumulator,
    }  # fmt: skip
    signature = {
        "a_ptr": f"*{dtype}", "b_ptr": f"*{dtype}", "c_ptr": f"*{out}",
        **dict.fromkeys(
            ["M", "N", "K", "stride_am", "stride_bk", "stride_bn", "stride_cm", *ORDER], "i32"),
    }  # fmt: skip
    options = {
        "num_warps": setting.waves, "num_stages": setting.stages,
        "matrix_instr_nonkdim": setting.instruction, "kpack": setting.k_pack,
    }  # fmt: skip
    return compiled(matmul, arch, signature, constants, options, ORDER)


def seconds(case: str, setting: str, runs: int) -> float:
    """What compiling takes a warm process, and nothing of it cached."""
    arch, kind, order = case.split(".")
    wanted = Setting.read(setting)
    taken = []
    for each in (replace(wanted, tile=(64, 64)), *runs * (wanted,)):
        with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
            triton.knobs.cache.dir = folder
            start = time.perf_counter()
            compile_gemm(arch, kind, order == "bt", each)
            taken.append(time.perf_counter() - start)
    return min(taken[1:])


def main() -> None:
    if sys.argv[1] == "--time":
        _, _, timed, name, runs = sys.argv
        print(seconds(timed, name, int(runs)))
        return
    folder = Path(sys.argv[1])
    for case in sys.argv[2:]:
        arch, kind, order = case.split(".")
        for setting in settings(arch):
            path = folder / f"{case}-{setting}.json"
            if path.exists():
                continue
            keep(path, partial(compile_gemm, arch, kind, order == "bt", setting))


if __name__ == "__main__":
    main()
