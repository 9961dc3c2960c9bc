"""Reductions over threads: every thread gets the whole, whatever the workgroup's shape."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import s_tir, te
from tvm.tirx import PrimFunc

import mfmadsl
from tests.conftest import FEW_EXAMPLES

Array = npt.NDArray[Any]
ARCH = "gfx942"


def _schedule(function: PrimFunc, threads: tuple[int, int]) -> s_tir.Schedule:
    """A workgroup of threads along x and y for each row, all of which reduce it."""
    sch = s_tir.Schedule(tvm.IRModule({"main": function}))
    block = sch.get_sblock("reduced")
    row, along = sch.get_loops(block)
    _, y, x = sch.split(along, [None, threads[1], threads[0]])
    sch.bind(row, "blockIdx.x")
    sch.bind(x, "threadIdx.x")
    if threads[1] > 1:
        sch.bind(y, "threadIdx.y")
    return sch


def _of_rows(combined: Any, dtype: str, shape: tuple[int, int]) -> PrimFunc:
    x = te.placeholder(shape, dtype, "x")
    along = te.reduce_axis((0, shape[1]), "along")
    made = te.compute(shape[:1], lambda i: combined(x[i, along], axis=along), name="reduced")
    return te.create_prim_func([x, made])


def _kernel(function: PrimFunc, threads: tuple[int, int], arch: str = ARCH) -> mfmadsl.Kernel:
    return mfmadsl.build(_schedule(function, threads), arch)


def _run(kernel: mfmadsl.Kernel, x: Array) -> Array:
    found = np.full(len(x), 77).astype(x.dtype)
    assert mfmadsl.sanitize(kernel, [x, found], keep_going=True).faults == ()
    return found


def _barriers(kernel: mfmadsl.Kernel) -> int:
    return kernel.assembly.count("s_barrier")


@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("threads", [(2, 1), (16, 1), (64, 1), (512, 1), (64, 4), (16, 16), (8, 4)])
def test_all_threads_have_a_part(threads: tuple[int, int], arch: str) -> None:
    columns = 3 * threads[0] * threads[1]
    kernel = _kernel(_of_rows(te.sum, "float32", (5, columns)), threads, arch)
    x = np.arange(5 * columns, dtype=np.float32).reshape(5, columns) % 1009
    np.testing.assert_array_equal(_run(kernel, x), x.sum(axis=1))
    waves = threads[0] * threads[1] // 64
    assert ("ds_write" in kernel.assembly) == (waves > 1)
    assert _barriers(kernel) <= 1


@pytest.mark.parametrize("threads", [(48, 1), (96, 1), (3, 64)])
def test_parts_of_waves_are_left_to_tvm(threads: tuple[int, int]) -> None:
    columns = threads[0] * threads[1]
    kernel = _kernel(_of_rows(te.max, "int32", (2, columns)), threads)
    x = np.random.default_rng(0).integers(-1000, 1000, (2, columns), np.int32)
    np.testing.assert_array_equal(_run(kernel, x), x.max(axis=1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int64", "int8"])
@pytest.mark.parametrize("threads", [(64, 1), (256, 1)])
def test_values_of_any_type(dtype: str, threads: tuple[int, int]) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.random.default_rng(1).integers(-60, 60, (3, 2 * threads[0])).astype(kind)
    kernel = _kernel(_of_rows(te.max, dtype, x.shape), threads)
    np.testing.assert_array_equal(_run(kernel, x), x.max(axis=1))


@given(st.integers(0, 2**32 - 1))
@FEW_EXAMPLES
def test_a_place_and_its_value_stay_together(seed: int) -> None:
    """Of equal values the combiner takes the first one it is given, in whichever order."""
    shape, random = (4, 256), np.random.default_rng(seed)
    x = random.integers(0, 5, shape).astype(np.float32)
    places, values = np.zeros(4, np.int32), np.zeros(4, np.float32)
    assert mfmadsl.sanitize(_FIRST, [x, places, values], keep_going=True).faults == ()
    np.testing.assert_array_equal(values, x.max(axis=1))
    np.testing.assert_array_equal(x[np.arange(len(x)), places], values)


def _largest_and_place() -> PrimFunc:
    shape = 4, 256
    x = te.placeholder(shape, "float32", "x")
    along = te.reduce_axis((0, shape[1]), "along")

    def later(a: Any, b: Any) -> Any:
        is_first = a[1] >= b[1]
        return tuple(tvm.tirx.Select(is_first, one, other) for one, other in zip(a, b, strict=True))

    def none(*types: str) -> Any:
        return tvm.tirx.const(-1, types[0]), tvm.tirx.min_value(types[1])

    largest = te.comm_reducer(later, none, name="largest")
    place: Any = along
    place = place.var
    made: Any = te.compute(
        shape[:1],
        lambda i: largest((place, x[i, along]), axis=along),
        name="reduced",
    )
    return te.create_prim_func([x, made[0], made[1]])


_FIRST = _kernel(_largest_and_place(), (128, 1))


def test_a_reduction_in_a_loop_waits_until_all_have_read_the_last() -> None:
    """The rows of a workgroup have a turn each."""
    function = _of_rows(te.sum, "float32", (7, 256))
    sch = s_tir.Schedule(tvm.IRModule({"main": function}))
    row, along = sch.get_loops(sch.get_sblock("reduced"))
    one, _ = sch.split(row, [1, 7])
    sch.bind(one, "blockIdx.x")
    sch.bind(along, "threadIdx.x")
    x = np.arange(7 * 256, dtype=np.float32).reshape(7, 256)
    np.testing.assert_array_equal(_run(mfmadsl.build(sch, ARCH), x), x.sum(axis=1))
