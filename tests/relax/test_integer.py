"""Products of bytes with zero points, as ONNX's MatMulInteger comes: exact, on matrix cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

import mfmadsl
from mfmadsl.relax.pipeline import fused, scheduled
from tests.relax.emulated import kernels_of, machine

M, N, K = 33, 40, 96
Shape = tuple[int, ...]


def model(
    types: tuple[str, str], zeros: tuple[Shape | None, Shape | None], constants: bool = False
) -> tvm.IRModule:
    """(int32(a) - a0) x (int32(b) - b0), with zero points of these shapes, arguments or -5."""
    op, builder = relax.op, relax.BlockBuilder()
    shapes = (M, K), (K, N)
    names = list(zip("ab", shapes, types, strict=True))
    factors = [relax.Var(name, relax.TensorType(shape, dtype)) for name, shape, dtype in names]
    given = [
        None if zero is None else relax.Var(f"{name}0", relax.TensorType(zero, dtype))
        for (name, _, dtype), zero in zip(names, zeros, strict=True)
    ]
    parameters = [*factors, *(() if constants else (each for each in given if each is not None))]
    with builder.function("main", parameters):
        with builder.dataflow():
            wide = []
            for place, (factor, zero) in enumerate(zip(factors, given, strict=True)):
                value = builder.emit(op.astype(factor, "int32"))
                if zero is not None and constants:
                    value = builder.emit(op.subtract(value, relax.const(-5, "int32")))
                elif zero is not None:
                    less = builder.emit(op.astype(zero, "int32"))
                    if len(zeros[place] or ()) == 1:
                        less = builder.emit(op.expand_dims(less, -1 if place == 0 else 0))
                    value = builder.emit(op.subtract(value, less))
                wide.append(value)
            result = builder.emit_output(op.matmul(*wide, out_dtype="int32"))
        builder.emit_func_output(result)
    found: tvm.IRModule = builder.get()
    return found


def any_bytes(shape: Shape, dtype: str, seed: int) -> Any:
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(seed)
    return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize(
    ("types", "zeros"),
    [
        (("int8", "int8"), (None, None)),
        (("uint8", "int8"), ((), None)),
        (("uint8", "int8"), (None, None)),
        (("uint8", "uint8"), ((M,), (N,))),
        (("int8", "int8"), ((), (1, N))),
    ],
    ids=str,
)
def test_it_is_a_product_of_int8(
    types: tuple[str, str], zeros: tuple[Shape | None, Shape | None]
) -> None:
    target = mfmadsl.target("gfx942")
    with target:
        module, report = scheduled(fused(model(types, zeros), target), target)
    (product,) = report.ours
    assert product.tiling is not None
    assert "_i8" in product.tiling.instruction
    a, b = any_bytes((M, K), types[0], 1), any_bytes((K, N), types[1], 2)
    points = [
        None if zero is None else any_bytes(zero, dtype, 3 + place)
        for place, (zero, dtype) in enumerate(zip(zeros, types, strict=True))
    ]
    a0 = 0 if points[0] is None else points[0].astype(np.int64).reshape(-1, 1)
    b0 = 0 if points[1] is None else points[1].astype(np.int64).reshape(1, -1)
    arguments = [a, b, *(each for each in points if each is not None)]
    run = machine(module, kernels_of(module, "gfx942"))["main"]
    found = run(*(tvm.runtime.tensor(each) for each in arguments)).numpy()
    assert (found == (a.astype(np.int64) - a0) @ (b.astype(np.int64) - b0)).all()


def test_constant_zero_points_below_zero() -> None:
    target = mfmadsl.target("gfx942")
    with target:
        whole = fused(model(("int8", "int8"), ((), ()), constants=True), target)
        module, report = scheduled(whole, target)
    assert len(report.ours) == 1
    a, b = any_bytes((M, K), "int8", 1), any_bytes((K, N), "int8", 2)
    run = machine(module, kernels_of(module, "gfx942"))["main"]
    found = run(*map(tvm.runtime.tensor, (a, b))).numpy()
    assert (found == (a.astype(np.int64) + 5) @ (b.astype(np.int64) + 5)).all()


@pytest.mark.parametrize("shape", [(K,), (M, K)])
def test_what_differs_along_the_sum_is_no_zero_point(shape: Shape) -> None:
    """The product stays as it is written."""
    op, builder = relax.op, relax.BlockBuilder()
    a, b = (
        relax.Var(name, relax.TensorType(of, "int8")) for name, of in (("a", (M, K)), ("b", (K, N)))
    )
    less = relax.Var("less", relax.TensorType(shape, "int32"))
    with builder.function("main", [a, b, less]):
        with builder.dataflow():
            first = builder.emit(op.subtract(builder.emit(op.astype(a, "int32")), less))
            second = builder.emit(op.astype(b, "int32"))
            result = builder.emit_output(op.matmul(first, second, out_dtype="int32"))
        builder.emit_func_output(result)
    target = mfmadsl.target("gfx942")
    with target:
        _, report = scheduled(fused(builder.get(), target), target)
    assert not report.ours


def test_a_sum_that_fits_is_right_where_its_parts_do_not() -> None:
    """140,000 products of 127 less a zero point of 127: 0, though A x B alone is beyond 2^31."""
    op, builder, depth = relax.op, relax.BlockBuilder(), 140_000
    a, b = (
        relax.Var(name, relax.TensorType(shape, "int8"))
        for name, shape in (("a", (16, depth)), ("b", (depth, 16)))
    )
    with builder.function("main", [a, b]):
        with builder.dataflow():
            first = builder.emit(op.astype(a, "int32"))
            first = builder.emit(op.subtract(first, relax.const(127, "int32")))
            result = op.matmul(first, builder.emit(op.astype(b, "int32")), out_dtype="int32")
            result = builder.emit_output(op.astype(builder.emit(result), "int64"))
        builder.emit_func_output(result)
    target = mfmadsl.target("gfx942")
    with target:
        module, _ = scheduled(fused(builder.get(), target), target)
    values = np.full((16, depth), 127, np.int8)
    values[3, 5] = 120
    run = machine(module, kernels_of(module, "gfx942"))["main"]
    ones = np.full((depth, 16), 127, np.int8)
    found = run(*map(tvm.runtime.tensor, (values, ones))).numpy()
    wanted = np.zeros((16, 16), np.int64)
    wanted[3] = -7 * 127
    assert (found == wanted).all()
