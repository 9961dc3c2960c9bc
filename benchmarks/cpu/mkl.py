"""Intel's MKL by its C interface, from the pip package `mkl`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]
Gemm: TypeAlias = Callable[[Matrix, Matrix, Matrix], object]

MISSING = "MKL is not there, and not compared with: pip install '.[bench]' (x86-64)"

_ROWS, _PLAIN = 101, 111  # CblasRowMajor, CblasNoTrans
_INT32 = 0  # MKL_INTERFACE_LP64
_VERSION = 198


def mkl(prefix: Path | None = None) -> tuple[str, Gemm] | None:
    """(its version, C = A x B of float32 by rows), or None where the package is not installed.

    `prefix` is the environment to look in, Python's own if none is given. MKL_NUM_THREADS says how
    many threads run.
    """
    folder = (Path(sys.prefix) if prefix is None else prefix) / "lib"
    found = sorted(folder.glob("libmkl_rt.so*"))
    if not found:
        return None
    for threads in sorted(folder.glob("libiomp5.so")):
        ctypes.CDLL(str(threads), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(found[-1]), mode=ctypes.RTLD_GLOBAL)
    library.MKL_Set_Interface_Layer(_INT32)
    text = ctypes.create_string_buffer(_VERSION)
    library.MKL_Get_Version_String(text, _VERSION)
    return text.value.decode().strip(), _gemm(library)


def _gemm(library: ctypes.CDLL) -> Gemm:
    def gemm(a: Matrix, b: Matrix, c: Matrix) -> None:
        (m, k), (_, n) = a.shape, b.shape
        one, none = ctypes.c_float(1), ctypes.c_float(0)
        library.cblas_sgemm(
            _ROWS, _PLAIN, _PLAIN, m, n, k, one, _pointer(a), k, _pointer(b), n, none,
            _pointer(c), n,
        )  # fmt: skip

    return gemm


def _pointer(matrix: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(matrix.ctypes.data)
