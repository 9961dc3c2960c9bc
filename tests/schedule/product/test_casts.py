"""Bytes that are cast to int32 before a product, as ONNX writes them: a product of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule import ScheduleError
from mfmadsl.schedule.product.casts import with_bytes_multiplied

M, N, K = 33, 40, 96


def casting(a_type: str, b_type: str, shared: bool = False) -> PrimFunc:
    """int32(A) x int32(B); `shared` says that the cast of A is added to the result, too."""
    a = te.placeholder((M, K), name="A", dtype=a_type)
    b = te.placeholder((K, N), name="B", dtype=b_type)
    wide_a = te.compute((M, K), lambda i, k: a[i, k].astype("int32"), name="wide_a")
    wide_b = te.compute((K, N), lambda k, j: b[k, j].astype("int32"), name="wide_b")
    r = te.reduce_axis((0, K), name="k")
    c = te.compute((M, N), lambda i, j: te.sum(wide_a[i, r] * wide_b[r, j], axis=[r]), name="C")
    if not shared:
        return te.create_prim_func([a, b, c])
    d = te.compute((M, N), lambda i, j: c[i, j] + wide_a[i, j], name="D")
    return te.create_prim_func([a, b, d])


def operands(a_type: str, b_type: str) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(3)
    a, b = (
        generator.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
        for dtype, shape in ((a_type, (M, K)), (b_type, (K, N)))
    )
    return a, b, np.zeros((M, N), np.int32)


@pytest.mark.parametrize("arch", ["gfx908", "gfx942"])
def test_it_takes_an_instruction_of_bytes(arch: str) -> None:
    function = casting("int8", "int8")
    assert "_i8" in mfmadsl.gemm_tiling(function, arch=arch).instruction
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch=arch), arch)
    a, b, c = operands("int8", "int8")
    mfmadsl.sanitize(kernel, [a, b, c])
    assert (c == a.astype(np.int64) @ b.astype(np.int64)).all()


@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "uint8"), ("int8", "int8")])
def test_a_cpu_takes_those_without_a_sign(types: tuple[str, str]) -> None:
    try:
        schedule = mfmadsl.cpu_gemm_schedule(casting(*types))
    except ScheduleError as error:
        pytest.skip(f"this CPU multiplies no bytes: {error}")
    a, b, c = operands(*types)
    mfmadsl.build_for_cpu(schedule)(a, b, c)
    assert (c == a.astype(np.int64) @ b.astype(np.int64)).all()


def test_what_others_read_stays() -> None:
    names = with_bytes_multiplied(casting("int8", "int8", shared=True)).script()
    assert 'T.sblock("wide_a")' in names
    assert 'T.sblock("wide_b")' not in names


def test_what_is_no_cast_of_bytes_stays() -> None:
    function = casting("int16", "int16")
    assert with_bytes_multiplied(function) is function
