"""The default tiling beside others, in the profiler's time on the chip: a table of docs/gemm.md.

    python -m benchmarks.choice [--shapes COUNT] [--others COUNT]

Of random shapes (f16, B transposed, M and N from 16 to 8192, K up to 8192) the tiling that is
chosen, those that the formula of the choice finds next best, and some at random are built and
profiled. A shape takes some tens of seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import fmean

import mfmadsl
from benchmarks.call import command, count
from benchmarks.gemm.case import Case, Shape
from benchmarks.gemm.peer import WORKERS
from mfmadsl.backend import build
from mfmadsl.schedule import Tiling, gemm_schedule
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from tests.schedule.matrix_core.gemm.case import CHIPS

LARGEST_WORK = 2**36  # multiply-adds of a shape: what more take is much the same


@dataclass(frozen=True)
class Found:
    """What is chosen for a shape, over the best that was tried."""

    shape: Shape
    chosen: Tiling
    best: Tiling
    ratio: float


def shapes(count: int, generator: random.Random) -> Iterator[Shape]:
    """Extents whose logarithms are uniform; of M and N half are multiples of 64."""

    def extent(low: int, high: int, step: int) -> int:
        drawn = round(math.exp(generator.uniform(math.log(low), math.log(high))) / step) * step
        return max(low, drawn)

    while count:
        m, n = (extent(16, 8192, generator.choice((1, 64))) for _ in range(2))
        shape = m, n, extent(256, 8192, 64)
        if math.prod(shape) <= LARGEST_WORK:
            yield shape
            count -= 1


def look(case: Case, shape: Shape, others: int, seed: int) -> Found:
    """Profile the choice for a shape, and others."""
    workload = case.workload(*shape)
    chosen = mfmadsl.gemm_tiling(workload, arch=case.arch)
    every = list(dict.fromkeys(gemm_tilings(workload, arch=case.arch)))
    tried = [chosen, *every[:others]]
    tried += random.Random(seed).sample(every[others:], min(others // 2, len(every[others:])))
    seconds = {tiling: seconds_of(case, shape, tiling) for tiling in dict.fromkeys(tried)}
    best = min(seconds, key=lambda tiling: seconds[tiling])
    return Found(shape, chosen, best, seconds[chosen] / seconds[best])


def seconds_of(case: Case, shape: Shape, tiling: Tiling) -> float:
    schedule = gemm_schedule(case.workload(*shape), arch=case.arch, tiling=tiling)
    return mfmadsl.profile(build(schedule, case.arch), case.arrays(*shape)).on_chip.seconds


def main() -> None:
    """Print a row for each chip, and what was the furthest off."""
    parser = command(__doc__)
    parser.add_argument("--shapes", type=count, default=200)
    parser.add_argument("--others", type=count, default=10)
    options = parser.parse_args()
    print("| chip | shapes | chosen over the best: mean | of nine in ten | worst | of |")
    print("| --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for arch in CHIPS:
            drawn = list(shapes(options.shapes, random.Random(14)))
            futures = [
                pool.submit(look, Case(arch, "f16", "bt"), shape, options.others, seed)
                for seed, shape in enumerate(drawn)
            ]
            found = sorted((future.result() for future in futures), key=lambda each: each.ratio)
            mean = math.exp(fmean(math.log(each.ratio) for each in found))
            most, worst = found[math.ceil(0.9 * len(found)) - 1].ratio, found[-1]
            name = "x".join(map(str, worst.shape))
            print(
                f"| {arch} | {len(found)} | {mean:.3f} | {most:.2f} | {worst.ratio:.2f} | {name} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
