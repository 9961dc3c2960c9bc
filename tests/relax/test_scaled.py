"""Scaled products in modules of Relax: by its operators, or as a PrimFunc that it calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.relax.pipeline import fused, scheduled
from tests.relax.emulated import kernels_of, machine
from tests.schedule.matrix_core.scaled.operands import GROUP, scaled
from tests.schedule.matrix_core.scaled.test_floats import E8M0, FP4, FP8, Form

M, N, K = 33, 48, 192


def tensor(name: str, shape: tuple[int, ...], dtype: str) -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


def operands(dtype: str) -> list[relax.Var]:
    """A and its scales, and B and those of it."""
    return [
        tensor("a", (M, K), dtype), tensor("a_scale", (M, K // GROUP), E8M0),
        tensor("b", (N, K), dtype), tensor("b_scale", (N, K // GROUP), E8M0),
    ]  # fmt: skip


def module(given: list[relax.Var], product: Callable[[relax.BlockBuilder], Any]) -> tvm.IRModule:
    """A ReLU of a product."""
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            result = builder.emit_output(relax.op.nn.relu(product(builder)))
        builder.emit_func_output(result)
    found: tvm.IRModule = builder.get()
    return found


def by_operators(dtype: str) -> tvm.IRModule:
    a, of_a, b, of_b = given = operands(dtype)

    def product(builder: relax.BlockBuilder) -> Any:
        def values(elements: Any, scales: Any) -> Any:
            each = relax.op.repeat(relax.op.astype(scales, "float32"), GROUP, 1)
            return builder.emit(relax.op.multiply(relax.op.astype(elements, "float32"), each))

        transposed = relax.op.permute_dims(values(b, of_b))
        return builder.emit(relax.op.matmul(values(a, of_a), transposed))

    return module(given, product)


def by_call(function: PrimFunc, given: list[relax.Var]) -> tvm.IRModule:
    def product(builder: relax.BlockBuilder) -> Any:
        called = builder.add_func(function.without_attr("global_symbol"), "product")
        return builder.emit(relax.call_tir(called, given, relax.TensorType((M, N), "float32")))

    return module(given, product)


def packed() -> tvm.IRModule:
    widths = (K // 2, K // 2, K // GROUP, K // GROUP)
    shapes = zip((M, N, M, N), widths, strict=True)
    given = [tensor(f"p{n}", shape, "uint8") for n, shape in enumerate(shapes)]
    return by_call(mfmadsl.scaled_matmul(M, N, K, FP4), given)


CASES = {
    "operators": (by_operators(FP8), FP8),
    "call": (by_call(Form().workload((M, N, K), (FP8, FP8)), operands(FP8)), FP8),
    "packed": (packed(), FP4),
}


def built(given: tvm.IRModule, arch: str) -> tuple[str, Any]:
    """The assembly of its only function, which is ours, and `main` in the emulator."""
    target = mfmadsl.target(arch)
    with target:
        lowered, report = scheduled(fused(given, target), target)
    (line,) = report.functions
    assert line.is_ours
    kernels = kernels_of(lowered, arch)
    return str(kernels[line.function].assembly), machine(lowered, kernels)["main"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.filterwarnings("ignore::mfmadsl.SlowLoopWarning")
def test_it_is_one_kernel_and_right(case: str, arch: str) -> None:
    given, dtype = CASES[case]
    assembly, run = built(given, arch)
    assert ("v_mfma_scale_" in assembly) == (arch == "gfx950")
    rng = np.random.default_rng(0)
    a, b = scaled(rng, M, K, dtype), scaled(rng, N, K, dtype)
    arrays: list[NDArray[np.generic]] = [a.packed, a.scales, b.packed, b.scales]
    if case == "packed":
        arrays = [a.packed, b.packed, a.scales, b.scales]
    else:
        types = [getattr(ml_dtypes, name) for name in (dtype, E8M0, dtype, E8M0)]
        arrays = [each.view(own) for each, own in zip(arrays, types, strict=True)]
    found = run(*(tvm.runtime.tensor(each) for each in arrays)).numpy()
    wanted = np.maximum(a.values @ b.values.T, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4 * wanted.max())


def test_elements_that_are_no_whole_bytes_are_refused() -> None:
    """Relax would give an array of elements where the kernel takes their bytes."""
    given = operands(FP4)
    target = mfmadsl.target("gfx950")
    with target:
        _, report = scheduled(
            fused(by_call(Form().workload((M, N, K), (FP4, FP4)), given), target), target
        )
    (line,) = report.functions
    assert not line.is_ours
    assert "holds float4_e2m1fn: give its bytes, as `scaled_matmul` takes them" in line.reason


def in_blocks() -> tuple[tvm.IRModule, list[NDArray[Any]], NDArray[np.float64]]:
    """DeepSeek's fp8 by Relax's operators, with arguments and what comes out."""
    m, n, k, groups = 40, 200, 384, 3
    given = [
        tensor("a", (m, k), FP8), tensor("a_scale", (m, groups), "float32"),
        tensor("b", (n, k), FP8), tensor("b_scale", (2, groups), "float32"),
    ]  # fmt: skip
    a, of_a, b, of_b = given

    def product(builder: relax.BlockBuilder) -> Any:
        def values(elements: Any, scales: Any) -> Any:
            return builder.emit(relax.op.multiply(relax.op.astype(elements, "float32"), scales))

        rows = relax.op.strided_slice(relax.op.repeat(of_b, 128, 0), [0], [0], [n])
        right = values(b, relax.op.repeat(rows, 128, 1))
        left = values(a, relax.op.repeat(of_a, 128, 1))
        return builder.emit(relax.op.matmul(left, relax.op.permute_dims(right)))

    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal((rows, k)).astype(ml_dtypes.float8_e4m3fn) for rows in (m, n))
    of_x, of_y = (rng.uniform(0.5, 2, (rows, groups)).astype(np.float32) for rows in (m, 2))
    left = x.astype(np.float64) * of_x.repeat(128, 1)
    right = y.astype(np.float64) * of_y.repeat(128, 0)[:n].repeat(128, 1)
    return module(given, product), [x, of_x, y, of_y], np.maximum(left @ right.T, 0)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.filterwarnings("ignore::mfmadsl.SlowLoopWarning")
def test_fp8_with_scales_of_blocks_is_one_kernel(arch: str) -> None:
    given, arrays, wanted = in_blocks()
    assembly, run = built(given, arch)
    assert ("f8f6f4" in assembly) == (arch == "gfx950")
    found = run(*(tvm.runtime.tensor(each) for each in arrays))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5 * wanted.max())
