"""Extents of 32 and of 64 bits in one workload: all places in 64 bits, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx
from tvm.script import from_source
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule import ScheduleError
from mfmadsl.schedule.product.index_type import with_one_index_type

COLUMNS, DEPTH = 40, 96


def mixed(dtype: str) -> PrimFunc:
    """Rows of a symbol, the rest numbers; an epilogue that says places in several ways."""
    s = te.var("s", dtype)
    a = te.placeholder((s, DEPTH), name="A", dtype="float16")
    b = te.placeholder((COLUMNS, DEPTH), name="B", dtype="float16")
    bias = te.placeholder((COLUMNS,), name="bias", dtype="float32")
    r = te.reduce_axis((0, DEPTH), name="k")
    c = te.compute(
        (s, COLUMNS),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    d = te.compute(
        (s, COLUMNS),
        lambda i, j: (
            tirx.Select(j < 5, c[i, j] * 2.0, c[i, j] + bias[tirx.min(j + 1, 39)])
            + (tirx.Select(j < 3, j, tirx.const(7, "int32")) * 3 + i).astype("float32")
        ),
        name="D",
    )
    return te.create_prim_func([a, b, bias, d])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_symbol_of_64_bits_beside_plain_numbers(arch: str) -> None:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(mixed("int64"), arch=arch), arch)
    generator = np.random.default_rng(5)
    for rows in (1, 37):
        a = generator.integers(-3, 4, (rows, DEPTH)).astype(np.float16)
        b = generator.integers(-3, 4, (COLUMNS, DEPTH)).astype(np.float16)
        bias = generator.integers(-9, 9, COLUMNS).astype(np.float32)
        d = np.zeros((rows, COLUMNS), np.float32)
        mfmadsl.sanitize(kernel, [a, b, bias, d])
        c = a.astype(np.float64) @ b.astype(np.float64).T
        i, j = np.ogrid[:rows, :COLUMNS]
        wanted = (
            np.where(j < 5, 2 * c, c + bias[np.minimum(j + 1, 39)]) + 3 * np.where(j < 3, j, 7) + i
        )
        assert (d == wanted).all()


def test_a_place_that_is_stored_has_the_type_of_its_buffer() -> None:
    s = te.var("s", "int64")
    a = te.placeholder((s, DEPTH), name="A", dtype="int8")
    b = te.placeholder((COLUMNS, DEPTH), name="B", dtype="int8")
    r = te.reduce_axis((0, DEPTH), name="k")
    c = te.compute(
        (s, COLUMNS),
        lambda i, j: te.sum(a[i, r].astype("int32") * b[j, r].astype("int32"), axis=[r]),
        name="C",
    )
    d = te.compute((s, COLUMNS), lambda i, j: c[i, j] + j, name="D")
    function = te.create_prim_func([a, b, d])
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx942"), "gfx942")
    generator = np.random.default_rng(6)
    factors = [generator.integers(-9, 9, (n, DEPTH)).astype(np.int8) for n in (33, COLUMNS)]
    found = np.zeros((33, COLUMNS), np.int32)
    mfmadsl.sanitize(kernel, [*factors, found])
    wide = [each.astype(np.int64) for each in factors]
    assert (found == wide[0] @ wide[1].T + np.arange(COLUMNS)).all()


def test_one_type_stays() -> None:
    function = mixed("int32")
    assert with_one_index_type(function) is function


PARAMETER = """
@T.prim_func(s_tir=True, private=True)
def rows_given(a: T.handle, b: T.Buffer((16, 64), "float16"), c: T.handle, m: T.int32):
    n = T.int64()
    A = T.match_buffer(a, (m, 64), "float16")
    C = T.match_buffer(c, (m, n), "float32")
    for i, j, k in T.grid(m, n, 64):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast(
                "float32", b[vj % T.int64(16), vk]
            )
"""


def test_a_parameter_keeps_its_type() -> None:
    with pytest.raises(ScheduleError, match="`m` is a parameter of 32 bits and an extent, beside"):
        with_one_index_type(from_source(PARAMETER))
