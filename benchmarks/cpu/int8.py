"""GEMMs of bytes beside oneDNN's: `python -m benchmarks.cpu.int8 [--threads N]`.

A is uint8, B int8, C int32, row-major, all exact; `pip install '.[bench]'` brings oneDNN, whose
function for a GEMM packs its operands in each call, as ours does. f32 is our own GEMM of floats.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from pathlib import Path

from benchmarks.cpu.timing import fresh

SHAPES = (
    (64, 64, 64), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
    (64, 1024, 1024), (1024, 64, 1024), (1000, 999, 998), (127, 2000, 333), (1024, 3072, 1024),
)  # fmt: skip


def onednn() -> ctypes.CDLL:
    """The library of the pip package `onednn-cpu-gomp`. Ends the process where it is missing."""
    found = sorted(Path(sys.prefix, "lib").glob("libdnnl.so*"))
    if not found:
        raise SystemExit("oneDNN is not there: pip install '.[bench]'")
    return ctypes.CDLL(str(found[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    fresh(asked.threads)

    from math import exp, log

    import numpy as np
    from tvm import te

    import mfmadsl
    from benchmarks.cpu.timing import side_by_side
    from mfmadsl.schedule.workload import product

    library = onednn()
    size, byte, word = ctypes.c_int64, ctypes.c_int8, ctypes.c_int32
    numbers = np.random.default_rng(0)
    of_onednn, of_floats = [], []

    def built(m: int, n: int, k: int, types: tuple[str, str, str]) -> mfmadsl.CpuKernel:
        workload = te.create_prim_func(list(product((m, n, k), types, (False, False))))
        return mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(workload, threads=asked.threads))

    print(f"{'M x N x K':<16}{'GOP/s':>8}{'oneDNN':>8}{'ratio':>8}{'f32':>8}{'ratio':>8}")
    for m, n, k in SHAPES:
        kernel = built(m, n, k, ("uint8", "int8", "int32"))
        floats = built(m, n, k, ("float32", "float32", "float32"))
        a = numbers.integers(0, 256, (m, k), np.uint8)
        b = numbers.integers(-128, 128, (k, n), np.int8)
        c, d = np.zeros((m, n), np.int32), np.zeros((m, n), np.int32)
        x, y, z = a.astype(np.float32), b.astype(np.float32), np.zeros((m, n), np.float32)
        offset = word(0)

        def theirs() -> None:
            status = library.dnnl_gemm_u8s8s32(
                ctypes.c_char(b"N"), ctypes.c_char(b"N"), ctypes.c_char(b"F"),
                size(m), size(n), size(k), ctypes.c_float(1),
                a.ctypes.data_as(ctypes.c_void_p), size(k), byte(0),
                b.ctypes.data_as(ctypes.c_void_p), size(n), byte(0), ctypes.c_float(0),
                d.ctypes.data_as(ctypes.c_void_p), size(n), ctypes.byref(offset),
            )  # fmt: skip
            if status:
                raise SystemExit(f"oneDNN refuses it: {status}")

        ours, other, own = side_by_side([lambda: kernel(a, b, c), theirs, lambda: floats(x, y, z)])
        right = a.astype(np.int64) @ b.astype(np.int64)
        if not (np.array_equal(c, right) and np.array_equal(d, right)):
            raise SystemExit(f"{m}x{n}x{k}: wrong numbers")
        work = 2e-9 * m * n * k
        of_onednn.append(other.least / ours.least)
        of_floats.append(own.least / ours.least)
        print(
            f"{f'{m}x{n}x{k}':<16}{work / ours.least:>8.0f}{work / other.least:>8.0f}"
            f"{of_onednn[-1]:>8.2f}{work / own.least:>8.0f}{of_floats[-1]:>8.2f}", flush=True,
        )  # fmt: skip
    means = [exp(sum(map(log, ratios)) / len(ratios)) for ratios in (of_onednn, of_floats)]
    print(f"geometric mean: {means[0]:.2f} of oneDNN, {means[1]:.2f} of our floats")


if __name__ == "__main__":
    main()
