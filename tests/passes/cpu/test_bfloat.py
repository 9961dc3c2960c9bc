"""`compute_bfloats`: a CPU computes with bfloat16 as ml_dtypes does, every value of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from tvm import te, tirx
from tvm.tirx import BufferStore

import mfmadsl

Array = npt.NDArray[Any]
BFLOAT = ml_dtypes.bfloat16
ALL = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT)


def ran(operation: Callable[..., Any], *inputs: Array, dtype: str = "bfloat16") -> Array:
    """The operation, element by element, on this machine."""
    n = len(inputs[0])
    arguments = [te.placeholder((n,), x.dtype.name, name=f"x{i}") for i, x in enumerate(inputs)]
    result = te.compute((n,), lambda i: operation(*(x[i] for x in arguments)), name="result")
    kernel = mfmadsl.build_for_cpu(te.create_prim_func([*arguments, result]))
    out = np.zeros(n, getattr(ml_dtypes, dtype, dtype))
    kernel(*inputs, out)
    return out


def same(found: Array, wanted: Array) -> None:
    """Of the same bits, but for those of NaN."""
    nan = np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), nan)
    kind = f"u{wanted.itemsize}"
    np.testing.assert_array_equal(found.view(kind)[~nan], wanted.view(kind)[~nan])


def test_every_value_is_a_float32_and_comes_back() -> None:
    same(ran(lambda x: x.astype("float32"), ALL, dtype="float32"), ALL.astype(np.float32))
    same(ran(lambda x: x.astype("float32").astype("bfloat16"), ALL), ALL)


def test_a_float32_is_rounded_to_nearest_ties_to_even() -> None:
    high = np.repeat(np.arange(0, 1 << 16, 7, dtype=np.uint32), 5) << 16
    low = np.resize(np.array([0, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32), len(high))
    numbers = (high | low).view(np.float32)
    with np.errstate(invalid="ignore"):
        same(ran(lambda x: x.astype("bfloat16"), numbers), numbers.astype(BFLOAT))


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        (lambda x, y: x + y, np.add), (lambda x, y: x * y, np.multiply),
        (lambda x, y: x / y, np.divide), (lambda x, y: x - y, np.subtract),
    ],
    ids=["add", "multiply", "divide", "subtract"],
)  # fmt: skip
def test_what_is_computed_is_rounded(
    operation: Callable[..., Any], wanted: Callable[..., Array]
) -> None:
    others = np.random.default_rng(0).permutation(ALL)
    with np.errstate(all="ignore"):
        same(ran(operation, ALL, others), wanted(ALL, others))


def test_functions_are_those_of_float32() -> None:
    numbers = np.linspace(-4, 4, 500).astype(BFLOAT)
    found = ran(tirx.tanh, numbers).astype(np.float32)
    np.testing.assert_allclose(found, np.tanh(numbers.astype(np.float32)), rtol=2**-7)


def test_a_comparison_and_a_selection_with_a_constant() -> None:
    third = tirx.const(1 / 3, "bfloat16")
    found = ran(lambda x: tirx.Select(x > third, x, third), ALL[:0x7F80])
    same(found, np.maximum(ALL[:0x7F80], BFLOAT(1 / 3)))


def test_vectors_stay_vectors() -> None:
    a, c = (tirx.decl_buffer([16], "bfloat16", name) for name in "AC")
    ramp = tirx.Ramp(tirx.const(0, "int32"), tirx.const(1, "int32"), 16)
    three = tirx.Broadcast(tirx.const(3, "bfloat16"), 16)
    function = tirx.PrimFunc([a, c], BufferStore(c, tirx.BufferLoad(a, [ramp]) * three, [ramp]))
    kernel = mfmadsl.build_for_cpu(function)
    x, z = (np.arange(16) * 9 - 70).astype(BFLOAT), np.zeros(16, BFLOAT)
    kernel(x, z)
    same(z, x * BFLOAT(3))
    assert "fmul <16 x float>" in kernel.llvm_ir


def test_what_is_only_moved_is_not_converted() -> None:
    """A buffer of the kernel's own keeps its type: TVM would make float32 of it."""
    a = te.placeholder((64, 64), "bfloat16", name="A")
    own = te.compute((64, 64), lambda i, j: a[j, i], name="own")
    c = te.compute((64, 64), lambda i, j: own[i, 63 - j], name="C")
    kernel = mfmadsl.build_for_cpu(te.create_prim_func([a, c]))
    x, z = ALL[: 64 * 64].reshape(64, 64), np.zeros((64, 64), BFLOAT)
    kernel(x, z)
    same(z.ravel(), x.T[:, ::-1].ravel())
    assert "float" not in kernel.llvm_ir.partition("_compute_(")[2].partition("\n}")[0]
