"""int8 times int8, through a dot product that takes one side without a sign: every bit is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tvm import s_tir, te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.host.cpu import host_cpu
from mfmadsl.model.cpu import cpu
from mfmadsl.schedule.cpu.signed import without_sign
from mfmadsl.schedule.product.prepare import prepared
from mfmadsl.schedule.workload.dense import product
from tests.backend.cpu.foreign_cpu import run_anywhere
from tests.schedule.cpu.workloads import MULTIPLIES_BYTES, needs_bytes

DOTS = host_cpu() if MULTIPLIES_BYTES else cpu("cascadelake")
"""A CPU with a dot product of bytes, this one if it has one."""


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


def test_it_is_exact_in_code_for_a_cpu_with_a_dot_product_of_bytes() -> None:
    function, shapes = workload((65, 33, 17))
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, cpu=DOTS), DOTS)
    a, b, c = whole(shapes[0], 1), whole(shapes[1], 2), np.full(shapes[2], 77, np.int32)
    run_anywhere(kernel, a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


READERS: dict[str, Callable[[Any], Any]] = {
    "astype(int64)": lambda sum_: sum_.astype("int64"),
    "whether it is more than 0": lambda sum_: tirx.Select(
        sum_ > 0, tirx.const(1, "int64"), tirx.const(0, "int64")
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_reads_a_sum_of_many_bytes_reads_what_fits_into_32_bits(reader: str) -> None:
    """(127 + 128) * 127 * 70,000 does not fit, 127 * 127 * 70,000 does."""
    k = 70_000
    a, b, total = product((1, 2, k), ("int8", "int8", "int32"), (False, False))
    read = te.compute((1, 2), lambda i, j: READERS[reader](total[i, j]), name="read")
    schedule = mfmadsl.cpu_gemm_schedule(te.create_prim_func([a, b, read]), cpu=DOTS, threads=1)
    kernel = mfmadsl.build_for_cpu(schedule, DOTS)
    x, y, z = np.full((1, k), 127, np.int8), np.full((k, 2), 127, np.int8), np.zeros((1, 2), "i8")
    y[0, 1] = -128
    run_anywhere(kernel, x, y, z)
    right = [127 * 127 * k, 127 * 127 * (k - 1) - 127 * 128]
    assert z.tolist() == [right if "int64" in reader else [1, 1]]


@pytest.mark.parametrize(("k", "dtype"), [(2**24 - 1, "int32"), (2**24, "int64")])
def test_sums_of_columns_are_of_a_type_that_they_fit_into(k: int, dtype: str) -> None:
    function, name = without_sign(prepared(workload((1, 1, k))[0]))
    sums = s_tir.Schedule(function)
    assert str(sums.get(sums.get_sblock(name)).writes[0].source.dtype) == dtype


def test_a_column_is_as_long_as_all_axes_of_its_sum_make_it() -> None:
    """4096 x 4096 products are 2^24, 2 x 2048 few."""

    def sums(r: int, t: int) -> str:
        a, b = (te.placeholder((1, r, t), "int8", name=name) for name in "AB")
        x, y = te.reduce_axis((0, r), name="r"), te.reduce_axis((0, t), name="t")
        c = te.compute(
            (1, 1),
            lambda i, j: te.sum(
                a[i, x, y].astype("int32") * b[j, x, y].astype("int32"), axis=[x, y]
            ),
            name="C",
        )
        function, name = without_sign(prepared(te.create_prim_func([a, b, c])))
        schedule = s_tir.Schedule(function)
        return str(schedule.get(schedule.get_sblock(name)).writes[0].source.dtype)

    assert [sums(4096, 4096), sums(2, 2048)] == ["int64", "int32"]


def test_batches_have_sums_of_their_own() -> None:
    function, (a_shape, b_shape, c_shape) = workload((9, 40, 21), batch=3)
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, cpu=DOTS, threads=2), DOTS)
    a, b, c = whole(a_shape, 3), whole(b_shape, 4), np.zeros(c_shape, np.int32)
    run_anywhere(kernel, a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


def test_sums_wrap_around_as_those_of_int32_do() -> None:
    """131,072 times 128 times 128 is 2^31."""
    function, _ = workload((1, 2, 131_072))
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, cpu=DOTS), DOTS)
    a, b = np.full((1, 131_072), -128, np.int8), np.full((131_072, 2), -128, np.int8)
    b[0, 1] = 0
    c = np.zeros((1, 2), np.int32)
    run_anywhere(kernel, a, b, c)
    assert c.tolist() == [[-(2**31), 2**31 - 128 * 128]]


def test_what_follows_is_still_folded_into_the_store() -> None:
    a, b, total = product((20, 33, 40), ("int8", "int8", "int32"), (False, False))
    scaled = te.compute((20, 33), lambda i, j: total[i, j].astype("float32") * 0.5, name="scaled")
    function = te.create_prim_func([a, b, scaled])
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, cpu=DOTS), DOTS)
    x, y, z = whole((20, 40), 5), whole((40, 33), 6), np.zeros((20, 33), np.float32)
    run_anywhere(kernel, x, y, z)
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
