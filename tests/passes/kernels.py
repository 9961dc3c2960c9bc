"""Kernels of one element-wise stage, emulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import te
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.model.numpy_type import numpy_type

_THREADS = 256


def schedule(stage: Callable[..., Any], inputs: list[tuple[str, int]], width: int = 1) -> Schedule:
    """A kernel that computes `stage` of the elements of arrays, `width` of them in a vector."""
    places = [
        te.placeholder((length,), name=f"in{number}", dtype=dtype)
        for number, (dtype, length) in enumerate(inputs)
    ]
    out = te.compute(places[0].shape, lambda i: stage(*(p[i] for p in places)), name="out")
    sch = Schedule(te.create_prim_func([*places, out]))
    (loop,) = sch.get_loops(sch.get_sblock("out"))
    block, thread, vector = sch.split(loop, [None, _THREADS, width])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    if width > 1:
        sch.vectorize(vector)
    return sch


def computed(
    stage: Callable[..., Any], *arrays: Any, out: str, arch: str = "gfx942", width: int = 1
) -> Any:
    """What the emulated kernel makes of arrays of one length."""
    inputs = [(str(array.dtype), len(array)) for array in arrays]
    result = np.zeros(len(arrays[0]), numpy_type(out))
    mfmadsl.emulate(mfmadsl.build(schedule(stage, inputs, width), arch), [*arrays, result])
    return result


def ulps(result: Any, exact: Any) -> Any:
    """How far float32 or float16 numbers are off, in units in the last place of the exact ones."""
    kind = np.finfo(result.dtype)
    with np.errstate(all="ignore"):
        wide = result.astype(np.float64)
        same = (wide == exact.astype(result.dtype)) | (np.isnan(wide) & np.isnan(exact))
        exponent = np.floor(np.log2(np.abs(exact)))
        unit = np.exp2(np.maximum(exponent, kind.minexp) - kind.nmant)
        found = np.abs(wide - exact) / unit
    # Infinities and NaN have no distance; what overflows is infinity, and right.
    return np.where(same & ~(found < 1), 0, np.where(np.isnan(found), np.inf, found))


def assert_same(result: Any, expected: Any) -> None:
    """The same bits, or NaN both."""
    bits = f"u{result.dtype.itemsize}"
    with np.errstate(all="ignore"):
        nan = np.isnan(result.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    wrong = np.flatnonzero((result.view(bits) != expected.view(bits)) & ~nan)
    assert not len(wrong), (wrong[:5], result[wrong[:5]], expected[wrong[:5]])


def cast(array: Any, name: str) -> Any:
    with np.errstate(all="ignore"):
        return array.astype(numpy_type(name))
