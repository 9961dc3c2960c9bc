"""float32 GEMMs on this CPU beside NumPy's OpenBLAS: `python -m benchmarks.cpu.gemm`.

Random shapes, extents from 64 to 2048 log-uniformly, row-major. Both get the same arrays and the
same number of threads; each result is compared with float64.
"""

from __future__ import annotations

import random
from math import exp, log

import numpy as np

import mfmadsl
from benchmarks.call import command, count
from benchmarks.cpu.timing import fresh, side_by_side


def main() -> None:
    """Print a line for each shape, and the mean."""
    parser = command(__doc__)
    parser.add_argument("--threads", type=count, default=1)
    parser.add_argument("--shapes", type=count, default=30)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    fresh(asked.threads)
    generator = random.Random(asked.seed)
    print(
        f"{'M x N x K':<16}{'micro-kernel':<18}{'chunk':<10}{'GFLOP/s':>9}{'NumPy':>8}{'ratio':>8}"
    )
    ratios = []
    for _ in range(asked.shapes):
        m, n, k = (round(exp(generator.uniform(log(64), log(2048)))) for _ in "mnk")
        ratios.append(_compared((m, n, k), asked.threads))
    mean = exp(sum(map(log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.3f}, least {min(ratios):.2f}")


def _compared(extents: tuple[int, int, int], threads: int) -> float:
    """Print the line of a shape; NumPy's time over ours."""
    m, n, k = extents
    workload = mfmadsl.matmul(m, n, k, "float32", "float32")
    tiling = mfmadsl.cpu_gemm_tiling(workload, threads=threads)
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(workload, tiling=tiling))
    numbers = np.random.default_rng(0)
    a = numbers.standard_normal((m, k), dtype=np.float32)
    b = numbers.standard_normal((k, n), dtype=np.float32)
    c, d = (np.full((m, n), np.nan, np.float32) for _ in "cd")
    ours, theirs = side_by_side([lambda: kernel(a, b, c), lambda: np.matmul(a, b, out=d)])
    error = np.abs(c - a.astype(np.float64) @ b)
    if not (error <= k * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))).all():
        raise SystemExit(f"{m}x{n}x{k}: wrong numbers")
    ratio, work = theirs.least / ours.least, 2e-9 * m * n * k
    chunk = f"{tiling.rows}x{tiling.columns}{' p' if tiling.parallel else ''}"
    print(
        f"{f'{m}x{n}x{k}':<16}{tiling.microkernel:<18}{chunk:<10}"
        f"{work / ours.least:>9.1f}{work / theirs.least:>8.1f}{ratio:>8.2f}", flush=True,
    )  # fmt: skip
    return ratio


if __name__ == "__main__":
    main()
