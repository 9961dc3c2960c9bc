"""Products in AMX's tile registers, in NumPy's emulation of their instructions, and on a CPU that
has them: the kernels themselves run, and all but those instructions is what LLVM made of it."""

from __future__ import annotations

from itertools import product as each_of
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from tvm import te, tirx

import mfmadsl
from mfmadsl import CpuKernel
from mfmadsl.language import microkernels
from mfmadsl.model.cpu import cpu
from mfmadsl.schedule.workload.dense import product
from tests.backend.cpu.foreign_cpu import run_elsewhere
from tests.cases import drawn

Array = npt.NDArray[Any]
AMX = cpu("sapphirerapids")
TILED = [each.name for each in microkernels().values() if each.tiles]
BFLOAT = "amx_bf16_32x32x32"
SHAPES = [(16, 16, 32), (32, 32, 32), (1, 1, 1), (33, 17, 40), (15, 47, 31), (64, 32, 96)]


def types_of(name: str) -> tuple[str, str, str]:
    a, b, c = (operand.type.dtype for operand in microkernels()[name].operands.values())
    return a, b, c


def numbered(shape: tuple[int, ...], dtype: str, period: int) -> Array:
    """Whole numbers of up to 7 bits that name their place: their sums are exact in float32."""
    number = np.arange(int(np.prod(shape))).reshape(shape)
    return (number * 5 % period - period // 2).astype(getattr(ml_dtypes, dtype, dtype))


def run(kernel: CpuKernel, *arrays: Array) -> Array:
    """The result, the last of the arrays; that of the CPU has to be the same, where it has AMX."""
    run_elsewhere(kernel, *arrays)
    if kernel.run is not None:
        again = np.full_like(arrays[-1], 7)
        kernel(*arrays[:-1], again)
        np.testing.assert_array_equal(again, arrays[-1])
    return arrays[-1]


def kernel_of(tensors: list[te.Tensor], name: str, threads: int = 1) -> CpuKernel:
    function = te.create_prim_func(tensors)
    return mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, name, AMX, None, threads), AMX)


def exact(a: Array, b: Array) -> Array:
    product_: Array = a.astype(np.float64) @ b.astype(np.float64)
    return product_


@pytest.mark.parametrize(
    ("name", "extents", "transposed"),
    drawn(each_of(TILED, SHAPES, [(False, False), (True, False), (False, True)]), 8),
)
def test_a_product_is_numpys(
    name: str, extents: tuple[int, int, int], transposed: tuple[bool, bool]
) -> None:
    types = types_of(name)
    a, b, c = product(extents, types, transposed)
    kernel = kernel_of([a, b, c], name)
    shapes = [tuple(map(int, each.shape)) for each in (a, b, c)]
    x, y = numbered(shapes[0], types[0], 127), numbered(shapes[1], types[1], 113)
    z = run(kernel, x, y, np.full(shapes[2], 7, types[2]))
    np.testing.assert_array_equal(
        z, exact(x.T if transposed[0] else x, y.T if transposed[1] else y)
    )


@pytest.mark.parametrize("name", TILED)
def test_ones_add_up_to_k(name: str) -> None:
    """Each element once: a panel of another type than the instruction's gives half of it."""
    tile, types = microkernels()[name], types_of(name)
    m, n, k = tile.m, tile.n, tile.k
    kernel = kernel_of(list(product((m, n, k), types, (False, False))), name)
    x, y = (np.ones(s, getattr(ml_dtypes, types[0], types[0])) for s in ((m, k), (k, n)))
    assert np.unique(run(kernel, x, y, np.zeros((m, n), types[2]))) == [k]


def test_floats_of_all_bits_are_as_exact_as_sums_of_float32() -> None:
    m, n, k = 40, 33, 70
    kernel = kernel_of(list(product((m, n, k), types_of(BFLOAT), (False, False))), BFLOAT)
    draw = np.random.default_rng(1)
    x, y = (draw.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
    away = np.abs(run(kernel, x, y, np.zeros((m, n), np.float32)) - exact(x, y))
    assert (away <= k * 2.0**-24 * exact(np.abs(x), np.abs(y))).all()


def test_batches_and_threads_have_tile_registers_of_their_own() -> None:
    kernel = kernel_of(
        list(product((40, 50, 33), types_of(BFLOAT), (False, False), 3)), BFLOAT, threads=2
    )
    x, y = numbered((3, 40, 33), "bfloat16", 127), numbered((3, 33, 50), "bfloat16", 113)
    z = run(kernel, x, y, np.zeros((3, 40, 50), np.float32))
    np.testing.assert_array_equal(z, exact(x, y))


def test_what_follows_in_bfloat_is_rounded_as_ml_dtypes_does() -> None:
    m, n, k = 33, 20, 40
    a, b, total = product((m, n, k), types_of(BFLOAT), (False, False))
    bias = te.placeholder((n,), "bfloat16", name="bias")
    rounded = te.compute((m, n), lambda i, j: total[i, j].astype("bfloat16"), name="rounded")
    zero = tirx.const(0, "bfloat16")
    c = te.compute((m, n), lambda i, j: tirx.max(rounded[i, j] + bias[j], zero), name="C")
    kernel = kernel_of([a, b, bias, c], BFLOAT)
    x, y = numbered((m, k), "bfloat16", 127), numbered((k, n), "bfloat16", 113)
    w = numbered((n,), "bfloat16", 19)
    z = run(kernel, x, y, w, np.full((m, n), 7, ml_dtypes.bfloat16))
    before = exact(x, y).astype(np.float32).astype(ml_dtypes.bfloat16) + w
    np.testing.assert_array_equal(z.astype(float), np.maximum(before.astype(float), 0))


def test_what_follows_sums_of_bytes_reads_all_of_their_bits() -> None:
    m, n, k = 17, 18, 70_000
    name = "amx_i8_32x32x64"
    a, b, total = product((m, n, k), types_of(name), (False, False))
    c = te.compute((m, n), lambda i, j: total[i, j].astype("int64"), name="C")
    x, y = np.full((m, k), 127, np.int8), np.full((k, n), 127, np.int8)
    z = run(kernel_of([a, b, c], name), x, y, np.zeros((m, n), np.int64))
    np.testing.assert_array_equal(z, exact(x, y))
