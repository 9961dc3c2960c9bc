"""Products of a symbolic M beside kernels that are made for each M, modelled.

    python -m benchmarks.gemm.any_m

For each chip, N and K a kernel of `gemm_schedule` with a symbolic M is launched with all powers of
two up to 8192 and with random ones. Its time is divided by that of the kernel made for that M.
`build` is the time to schedule and build it, as a multiple of that for M = 4096. It takes about
an hour; `--shape 4096 4096` measures one N and K alone, and `--sample` every second power and half
of the random ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import click
import numpy as np
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule.workload import dense

CHIPS = "gfx942", "gfx950"
SHAPES = ((4096, 4096), (14336, 4096), (4096, 14336), (6144, 4096), (28672, 4096))
_POWERS = tuple(1 << n for n in range(14))
_DRAWN = tuple(int(m) for m in np.random.default_rng(20).integers(1, 8193, 20))
_ALL = tuple(sorted({*_POWERS, *_DRAWN}))
_SAMPLE = tuple(sorted({*_POWERS[::2], *_DRAWN[:10]}))


def product(m: Any, n: int, k: int) -> PrimFunc:
    """C = A x B^T of float16; M is a number or a symbol."""
    types = "float16", "float16", "float32"
    return te.create_prim_func([*dense.product((m, n, k), types, (False, True))])


def built(workload: PrimFunc, arch: str) -> tuple[mfmadsl.Kernel, float]:
    """A kernel, and the seconds that scheduling and building it took."""
    start = time.perf_counter()
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    return kernel, time.perf_counter() - start


def seconds(kernel: mfmadsl.Kernel, m: int, n: int, k: int) -> float:
    """The modelled time of a launch with M rows."""
    shapes = ((m, k), "float16"), ((n, k), "float16"), ((m, n), "float32")
    arrays = [np.ones(shape, dtype) for shape, dtype in shapes]
    on_chip = mfmadsl.profile(kernel, arrays).on_chip
    assert on_chip is not None
    return on_chip.seconds


def rows(arch: str, n: int, k: int, extents: Sequence[int]) -> list[str]:
    """One line of the table, and one for each M that loses more than a tenth."""
    built(product(16, n, k), arch)  # what the first build of a process loads
    symbolic, took = built(product(te.var("m"), n, k), arch)
    _, once = built(product(4096, n, k), arch)
    ratios: dict[int, float] = {}
    for m in extents:
        own, _ = built(product(m, n, k), arch)
        ratios[m] = seconds(symbolic, m, n, k) / seconds(own, m, n, k)
    worst = max(ratios, key=lambda m: ratios[m])
    cells = [
        arch, f"{n} x {k}", str(len(extents)), f"{median(ratios.values()):.2f}",
        f"{ratios[worst]:.2f}", str(worst),
        str(len(list(symbolic.chain()))), f"{took / once:.1f}",
    ]  # fmt: skip
    slow = [f"    M = {m}: {ratio:.2f}" for m, ratio in sorted(ratios.items()) if ratio > 1.1]
    return [f"| {' | '.join(cells)} |", *slow]


@click.command()
@click.option("--shape", type=(int, int), multiple=True, help="N and K; several times, if need be")
@click.option("--arch", multiple=True, default=CHIPS, help="a chip")
@click.option("--sample", is_flag=True, help="fewer M")
def main(shape: tuple[tuple[int, int], ...], arch: tuple[str, ...], sample: bool) -> None:
    """Print the table."""
    print("| modelled | N x K | extents | median | worst | at M | kernels | build |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for chip in arch:
        for n, k in shape or SHAPES:
            print("\n".join(rows(chip, n, k, _SAMPLE if sample else _ALL)), flush=True)


if __name__ == "__main__":
    main()
