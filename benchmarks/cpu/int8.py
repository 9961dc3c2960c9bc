"""GEMMs of bytes beside oneDNN's: `python -m benchmarks.cpu.int8 [--threads N]`.

A is uint8, B int8, C int32, row-major, all exact; ours take VNNI, oneDNN's take AMX where it is.
`pip install '.[bench]'` brings oneDNN, whose function for a GEMM packs its operands in each call,
as ours does. f32 is our own GEMM of floats.
"""

from __future__ import annotations

import ctypes
import sys
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te

import mfmadsl
from benchmarks.call import command, count
from benchmarks.cpu.timing import fresh, model_name, side_by_side
from mfmadsl.schedule.workload.dense import product

SHAPES = (
    (64, 64, 64), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
    (64, 1024, 1024), (1024, 64, 1024), (1000, 999, 998), (127, 2000, 333), (1024, 3072, 1024),
)  # fmt: skip

_AMX = 0xFEF  # avx512_core_amx

_Matrix = npt.NDArray[Any]


def main() -> None:
    """Print a line for each shape, and the means."""
    parser = command(__doc__)
    parser.add_argument("--threads", type=count, default=1)
    asked = parser.parse_args()
    fresh(asked.threads)
    library = _onednn()
    print(f"{model_name()}; oneDNN {'with' if _uses_tiles(library) else 'without'} AMX")
    print(f"{'M x N x K':<16}{'GOP/s':>8}{'oneDNN':>8}{'ratio':>8}{'f32':>8}{'ratio':>8}")
    pairs = [_compared(library, extents, asked.threads) for extents in SHAPES]
    means = [exp(sum(map(log, ratios)) / len(ratios)) for ratios in zip(*pairs, strict=True)]
    print(f"geometric mean: {means[0]:.2f} of oneDNN, {means[1]:.2f} of our floats")


def _onednn() -> ctypes.CDLL:
    """The library of the pip package `onednn-cpu-gomp`. Ends the process where it is missing."""
    found = sorted(Path(sys.prefix, "lib").glob("libdnnl.so*"))
    if not found:
        raise SystemExit("oneDNN is not there: pip install '.[bench]'")
    return ctypes.CDLL(str(found[-1]))


def _uses_tiles(library: ctypes.CDLL) -> bool:
    """Whether oneDNN multiplies in tile registers on this CPU (dnnl_types.h, dnnl_cpu_isa_t)."""
    return int(library.dnnl_get_effective_cpu_isa()) & _AMX == _AMX


def _compared(
    library: ctypes.CDLL, extents: tuple[int, int, int], threads: int
) -> tuple[float, float]:
    """Print the line of a shape; oneDNN's time, and that of our floats, over ours."""
    m, n, k = extents
    kernel = _built(extents, ("uint8", "int8", "int32"), threads)
    floats = _built(extents, ("float32", "float32", "float32"), threads)
    numbers = np.random.default_rng(0)
    a = numbers.integers(0, 256, (m, k), np.uint8)
    b = numbers.integers(-128, 128, (k, n), np.int8)
    c, d = np.zeros((m, n), np.int32), np.zeros((m, n), np.int32)
    x, y, z = a.astype(np.float32), b.astype(np.float32), np.zeros((m, n), np.float32)
    ours, theirs, own = side_by_side(
        [lambda: kernel(a, b, c), lambda: _gemm(library, a, b, d), lambda: floats(x, y, z)]
    )
    right = a.astype(np.int64) @ b.astype(np.int64)
    if not (np.array_equal(c, right) and np.array_equal(d, right)):
        raise SystemExit(f"{m}x{n}x{k}: wrong numbers")
    of_onednn, of_floats = theirs.least / ours.least, own.least / ours.least
    work = 2e-9 * m * n * k
    print(
        f"{f'{m}x{n}x{k}':<16}{work / ours.least:>8.0f}{work / theirs.least:>8.0f}"
        f"{of_onednn:>8.2f}{work / own.least:>8.0f}{of_floats:>8.2f}", flush=True,
    )  # fmt: skip
    return of_onednn, of_floats


def _built(
    extents: tuple[int, int, int], types: tuple[str, str, str], threads: int
) -> mfmadsl.CpuKernel:
    workload = te.create_prim_func(list(product(extents, types, (False, False))))
    try:
        return mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(workload, threads=threads))
    except mfmadsl.ScheduleError as error:
        raise SystemExit(f"nothing to measure on this CPU: {error}") from None


def _gemm(library: ctypes.CDLL, a: _Matrix, b: _Matrix, c: _Matrix) -> None:
    """C = A x B by oneDNN, which takes matrices by rows."""
    (m, k), (_, n) = a.shape, b.shape
    no, fixed = ctypes.c_char(b"N"), ctypes.c_char(b"F")
    size, byte = ctypes.c_int64, ctypes.c_int8(0)
    offset = ctypes.c_int32(0)
    status = library.dnnl_gemm_u8s8s32(
        no, no, fixed, size(m), size(n), size(k), ctypes.c_float(1),
        ctypes.c_void_p(a.ctypes.data), size(k), byte,
        ctypes.c_void_p(b.ctypes.data), size(n), byte, ctypes.c_float(0),
        ctypes.c_void_p(c.ctypes.data), size(n), ctypes.byref(offset),
    )  # fmt: skip
    if status:
        raise SystemExit(f"oneDNN refuses it: {status}")


if __name__ == "__main__":
    main()
