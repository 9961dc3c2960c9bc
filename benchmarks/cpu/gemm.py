"""float32 GEMMs on this CPU beside NumPy's OpenBLAS and MKL: `python -m benchmarks.cpu.gemm`.

Random shapes, extents from 64 to 2048 log-uniformly, row-major. All get the same arrays and the
same number of threads; each result is compared with float64. MKL is compared with where it is
installed (`pip install '.[bench]'`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from math import exp, log

import numpy as np

import mfmadsl
from benchmarks.call import command, count
from benchmarks.cpu.mkl import MISSING, Gemm, mkl
from benchmarks.cpu.timing import fresh, model_name, side_by_side


def main() -> None:
    """Print a line for each shape, and the mean."""
    parser = command(__doc__)
    parser.add_argument("--threads", type=count, default=1)
    parser.add_argument("--shapes", type=count, default=30)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    fresh(asked.threads)
    found = mkl()
    peers: dict[str, Gemm] = {"NumPy": lambda a, b, c: np.matmul(a, b, out=c)}
    if found is not None:
        peers["MKL"] = found[1]
    print(f"{model_name()}; NumPy {np.__version__}; {found[0] if found else MISSING}")
    columns = "".join(f"{name:>8}{'ratio':>8}" for name in peers)
    print(f"{'M x N x K':<16}{'micro-kernel':<18}{'chunk':<10}{'GFLOP/s':>9}{columns}")
    generator = random.Random(asked.seed)
    ratios: list[list[float]] = []
    for _ in range(asked.shapes):
        m, n, k = (round(exp(generator.uniform(log(64), log(2048)))) for _ in "mnk")
        ratios.append(_compared((m, n, k), asked.threads, list(peers.values())))
    for name, own in zip(peers, zip(*ratios, strict=True), strict=True):
        mean = exp(sum(map(log, own)) / len(own))
        print(f"of {name}'s speed: geometric mean {mean:.3f}, least {min(own):.2f}")


def _compared(extents: tuple[int, int, int], threads: int, peers: Sequence[Gemm]) -> list[float]:
    """Print the line of a shape; each peer's time over ours."""
    m, n, k = extents
    workload = mfmadsl.matmul(m, n, k, "float32", "float32")
    tiling = mfmadsl.cpu_gemm_tiling(workload, threads=threads)
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(workload, tiling=tiling))
    numbers = np.random.default_rng(0)
    a = numbers.standard_normal((m, k), dtype=np.float32)
    b = numbers.standard_normal((k, n), dtype=np.float32)
    results = [np.full((m, n), np.nan, np.float32) for _ in range(1 + len(peers))]
    contenders: list[Callable[..., object]] = [kernel, *peers]
    calls = [partial(each, a, b, c) for each, c in zip(contenders, results, strict=True)]
    ours, *theirs = side_by_side(calls)
    bound = k * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))
    for c in results:
        if not (np.abs(c - a.astype(np.float64) @ b) <= bound).all():
            raise SystemExit(f"{m}x{n}x{k}: wrong numbers")
    work = 2e-9 * m * n * k
    ratios = [each.least / ours.least for each in theirs]
    chunk = f"{tiling.rows}x{tiling.columns}{' p' if tiling.parallel else ''}"
    columns = "".join(
        f"{work / each.least:>8.1f}{ratio:>8.2f}"
        for each, ratio in zip(theirs, ratios, strict=True)
    )
    shape = f"{m}x{n}x{k}"
    of_ours = f"{work / ours.least:>9.1f}"
    print(f"{shape:<16}{tiling.microkernel:<18}{chunk:<10}{of_ours}{columns}", flush=True)
    return ratios


if __name__ == "__main__":
    main()
