"""int8 times int8, through a dot product that takes one side without a sign: every bit is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.model.cpu import cpu
from mfmadsl.schedule.workload import product
from tests.schedule.cpu_gemm.workloads import needs_bytes


def workload(extents: tuple[int, int, int], transposed: tuple[bool, bool] = (False, False),
             batch: int | None = None) -> tuple[PrimFunc, list[tuple[int, ...]]]:  # fmt: skip
    tensors = product(extents, ("int8", "int8", "int32"), transposed, batch)
    shapes = [tuple(int(extent) for extent in tensor.shape) for tensor in tensors]
    return te.create_prim_func(list(tensors)), shapes


def whole(shape: tuple[int, ...], seed: int) -> npt.NDArray[Any]:
    """All bytes, the extremes often."""
    numbers = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    numbers[..., ::3] = np.where(numbers[..., ::3] > 0, 127, -128)
    return numbers


@needs_bytes
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    "extents", [(1, 1, 1), (3, 1, 5), (64, 64, 64), (65, 33, 17), (7, 130, 259), (130, 5, 4)]
)
def test_it_is_exact(extents: tuple[int, int, int], transposed: tuple[bool, bool]) -> None:
    function, (a_shape, b_shape, c_shape) = workload(extents, transposed)
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function))
    a, b, c = whole(a_shape, 1), whole(b_shape, 2), np.full(c_shape, 77, np.int32)
    kernel(a, b, c)
    left, right = a.T if transposed[0] else a, b.T if transposed[1] else b
    np.testing.assert_array_equal(c, left.astype(np.int64) @ right.astype(np.int64))


@needs_bytes
def test_batches_have_sums_of_their_own() -> None:
    function, (a_shape, b_shape, c_shape) = workload((9, 40, 21), batch=3)
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, threads=2))
    a, b, c = whole(a_shape, 3), whole(b_shape, 4), np.zeros(c_shape, np.int32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


@needs_bytes
def test_sums_wrap_around_as_those_of_int32_do() -> None:
    """131,072 times 128 times 128 is 2^31."""
    function, _ = workload((1, 2, 131_072))
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function))
    a, b = np.full((1, 131_072), -128, np.int8), np.full((131_072, 2), -128, np.int8)
    b[0, 1] = 0
    c = np.zeros((1, 2), np.int32)
    kernel(a, b, c)
    assert c.tolist() == [[-(2**31), 2**31 - 128 * 128]]


@needs_bytes
def test_what_follows_is_still_folded_into_the_store() -> None:
    a, b, total = product((20, 33, 40), ("int8", "int8", "int32"), (False, False))
    scaled = te.compute((20, 33), lambda i, j: total[i, j].astype("float32") * 0.5, name="scaled")
    function = te.create_prim_func([a, b, scaled])
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function))
    x, y, z = whole((20, 40), 5), whole((40, 33), 6), np.zeros((20, 33), np.float32)
    kernel(x, y, z)
    np.testing.assert_array_equal(z, (x.astype(np.int64) @ y.astype(np.int64)) * np.float32(0.5))


def test_tile_registers_multiply_signed_bytes_as_they_are() -> None:
    """AMX, by its name: no sums of columns."""
    function, _ = workload((64, 64, 64))
    amx = mfmadsl.cpu_gemm_schedule(function, "amx_i8_32x32x64", cpu("sapphirerapids"))
    vnni = mfmadsl.cpu_gemm_schedule(function, cpu=cpu("sapphirerapids"))
    assert "_sums" not in amx.mod.script()
    assert "_unsigned" not in amx.mod.script()
    assert "_sums" in vnni.mod.script()


def test_without_a_dot_product_of_bytes_it_is_refused() -> None:
    function, _ = workload((64, 64, 64))
    with pytest.raises(mfmadsl.ScheduleError, match="no micro-kernel of the CPU haswell"):
        mfmadsl.cpu_gemm_schedule(function, cpu=cpu("haswell"))
