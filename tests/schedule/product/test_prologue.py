"""What an operand that is computed on its way is made of, as its tiling is chosen by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule.product.normalise import normalise, product_block
from mfmadsl.schedule.product.prologue import Prologue

N, K = 64, 512


def workload(
    arrays: Mapping[str, tuple[tuple[int, ...], str]], value: Callable[..., Any]
) -> PrimFunc:
    """A product whose B is computed of some arrays."""
    a = te.placeholder((32, K), "float16", "A")
    given = [te.placeholder(shape, dtype, name) for name, (shape, dtype) in arrays.items()]
    b = te.compute((N, K), lambda j, k: value(*given, j, k), "B")
    r = te.reduce_axis((0, K), "k")
    c = te.compute(
        (32, N),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        "C",
    )
    return te.create_prim_func([a, *given, c])


def of_b(function: PrimFunc) -> Prologue | None:
    sch = Schedule(tvm.IRModule({"main": function}))
    first, second = normalise(sch, product_block(sch)).prologues
    assert first is None
    return second


def nibble(q: Any, j: Any, k: Any) -> Any:
    return q[j, k // 8] >> (k % 8 * 4).astype("uint32") & tirx.const(15, "uint32")


def test_four_bits_with_a_scale_of_each_group() -> None:
    arrays = {"Q": ((N, K // 8), "uint32"), "S": ((N, K // 128), "float16")}
    found = of_b(
        workload(arrays, lambda q, s, j, k: nibble(q, j, k).astype("float16") * s[j, k // 128])
    )
    assert found is not None
    assert sorted(found.stored) == [2 / 128, 4 / 8]


def test_what_does_not_change_along_k_is_left_out() -> None:
    arrays = {"Q": ((N, K), "int8"), "S": ((N,), "float16")}
    found = of_b(workload(arrays, lambda q, s, j, k: q[j, k].astype("float16") * s[j]))
    assert found == Prologue((1.0,), 1.5)


def test_a_place_that_is_read_counts_as_one_for_each_k() -> None:
    arrays = {"Q": ((N, K), "float16"), "P": ((K,), "int32")}
    found = of_b(workload(arrays, lambda q, p, j, k: q[j, p[k]] * tirx.const(2, "float16")))
    assert found is not None
    assert sorted(found.stored) == [2.0, 4.0]


def test_an_argument_has_none() -> None:
    assert of_b(mfmadsl.matmul(32, N, K, "float16", "float32", b_transposed=True)) is None


@pytest.mark.parametrize(("arch", "rows"), [("gfx942", 1), ("gfx942", 16), ("gfx950", 16)])
def test_of_few_rows_waves_share_the_steps_of_small_weights(arch: str, rows: int) -> None:
    """One wave would take longer to compute the elements than memory to bring them."""
    shape = rows, 14336, 4096
    a = te.placeholder((shape[0], shape[2]), "float16", "A")
    q = te.placeholder((shape[1], shape[2] // 8), "uint32", "Q")
    b = te.compute((shape[1], shape[2]), lambda j, k: nibble(q, j, k).astype("float16"), "B")
    r = te.reduce_axis((0, shape[2]), "k")
    c = te.compute(
        shape[:2],
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        "C",
    )
    tiling = mfmadsl.gemm_tiling(te.create_prim_func([a, q, c]), arch=arch)
    assert tiling.k_waves >= 4
    assert tiling.k_step >= 256
