"""`narrow_types`: bfloat16 and eight-bit floats are computed as ml_dtypes does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tvm import tirx

import mfmadsl
from mfmadsl import LoweringError
from mfmadsl.model import ARCHITECTURES, ELEMENT_TYPES
from mfmadsl.model.numpy_type import numpy_type
from tests.cases import drawn
from tests.passes.kernels import assert_same, cast, computed, schedule

CHIPS = {
    "bfloat16": "gfx90a", "float8_e4m3fnuz": "gfx942", "float8_e5m2fnuz": "gfx942",
    "float8_e4m3fn": "gfx950", "float8_e5m2": "gfx950", "float8_e8m0fnu": "gfx950",
}  # fmt: skip
NARROW = list(CHIPS)
Stage = Callable[..., Any]


def patterns(name: str) -> Any:
    """All values of a narrow type."""
    dtype = numpy_type(name)
    return np.arange(2 ** (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)


def near(name: str) -> Any:
    """Values of float32 that a narrow type holds, between them and around their middles."""
    held = patterns(name).astype(np.float32)
    held = np.unique(held[np.isfinite(held)])
    middles = ((held[:-1].astype(np.float64) + held[1:]) / 2).astype(np.float32)
    around = [np.nextafter(middles, np.float32(to)) for to in (-np.inf, np.inf)]
    extremes = [np.float32(x) for x in (np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40, 0, -0.0)]
    with np.errstate(all="ignore"):
        numbers = np.concatenate([held, middles, *around, held * np.float32(1.125), extremes])
    return np.resize(numbers.astype(np.float32), -(-len(numbers) // 1024) * 1024)


def pairs(name: str, count: int = 1 << 13) -> tuple[Any, Any]:
    """Pairs of values of a narrow type: all of eight bits, a sample of 16, with special ones."""
    values = patterns(name)
    if len(values) == 256:
        return np.repeat(values, 256), np.tile(values, 256)
    generator = np.random.default_rng(2)
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, 3e38], values.dtype)
    close = generator.standard_normal((2, count)).astype(values.dtype)
    some = generator.choice(values, (2, count - 256))
    ends = [np.resize(each, 256) for each in (np.repeat(special, 9), np.tile(special, 9))]
    x, y = (np.concatenate(parts) for parts in zip(close, some, ends, strict=True))
    return x, y


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("to", ["float32", "float16", "float64"])
def test_each_value_widens_as_it_is(name: str, width: int, to: str) -> None:
    values = patterns(name)
    if len(values) < 1024:
        values = np.resize(values, 1024)
    result = computed(lambda x: x.astype(to), values, out=to, arch=CHIPS[name], width=width)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, values.astype(np.float32).astype(to))


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("width", [1, 4])
def test_float32_rounds_to_nearest_even(name: str, width: int) -> None:
    values = near(name)
    result = computed(lambda x: x.astype(name), values, out=name, arch=CHIPS[name], width=width)
    assert_same(result, cast(values, name))


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("source", ["float16", "float64", "int32", "int8", "int64", "uint8"])
def test_other_types_round_as_those_of_ml_dtypes(name: str, source: str) -> None:
    generator = np.random.default_rng(3)
    values = generator.standard_normal(2048) * np.exp2(generator.uniform(-4, 12, 2048))
    values = np.clip(values, 0 if source == "uint8" else -120, 120) if "8" in source else values
    values = values.astype(source)
    result = computed(lambda x: x.astype(name), values, out=name, arch=CHIPS[name])
    assert_same(result, cast(values.astype(np.float32), name))


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("to", ["int32", "int8", "int64"])
def test_narrow_values_become_integers_towards_zero(name: str, to: str) -> None:
    values = patterns(name)
    values = values[np.abs(np.nan_to_num(values.astype(np.float32), nan=1e9)) < 127]
    values = np.resize(values, 1024 * 32)
    result = computed(lambda x: x.astype(to), values, out=to, arch=CHIPS[name])
    np.testing.assert_array_equal(result, values.astype(np.float32).astype(to))


@pytest.mark.parametrize(
    ("source", "to", "arch"),
    [
        ("bfloat16", "float8_e4m3fnuz", "gfx942"), ("bfloat16", "float8_e5m2", "gfx950"),
        ("float8_e4m3fnuz", "bfloat16", "gfx942"), ("float8_e5m2fnuz", "float8_e4m3fnuz", "gfx942"),
        ("float8_e4m3fn", "float8_e5m2", "gfx950"), ("float8_e5m2", "float8_e4m3fn", "gfx950"),
    ],
)  # fmt: skip
def test_narrow_to_narrow(source: str, to: str, arch: str) -> None:
    values = patterns(source)
    result = computed(lambda x: x.astype(to), values, out=to, arch=arch)
    assert_same(result, cast(values.astype(np.float32), to))


def fabs(x: Any) -> Any:
    """TVM's own `abs` refuses eight bits."""
    return tirx.call_intrin(x.dtype, "tirx.fabs", x)


def isnan(x: Any) -> Any:
    """TVM's own refuses all narrow types."""
    return tirx.call_intrin("bool", "tirx.isnan", x)


def larger(x: Any, y: Any) -> Any:
    """The larger number of two, where one is not NaN: of zeros the positive one."""
    return np.where(x == y, np.where(np.signbit(x), y, x), np.fmax(x, y))


ARITHMETIC: dict[str, tuple[Stage, Stage]] = {
    "add": (lambda x, y: x + y, np.add), "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply), "div": (lambda x, y: x / y, np.divide),
    "max": (tirx.max, larger), "min": (tirx.min, lambda x, y: -larger(-x, -y)),
    "neg": (lambda x, _: tirx.const(0, x.dtype) - x, lambda x, _: 0 - x),
    "abs": (lambda x, _: fabs(x), lambda x, _: np.abs(x)),
    "sqrt": (lambda x, _: tirx.sqrt(fabs(x)), lambda x, _: np.sqrt(np.abs(x))),
    "floor": (lambda x, _: tirx.floor(x), lambda x, _: np.floor(x)),
    "constant": (lambda x, _: x + tirx.const(2, x.dtype), lambda x, _: x + 2),
}  # fmt: skip


@pytest.mark.parametrize(("name", "operation"), drawn(product(NARROW, ARITHMETIC), 30))
def test_arithmetic_is_rounded_once(name: str, operation: str) -> None:
    stage, model = ARITHMETIC[operation]
    x, y = pairs(name)
    wide = [v.astype(np.float32) for v in (x, y)]
    with np.errstate(all="ignore"):
        expected = cast(model(*wide), name)
    result = computed(stage, x, y, out=name, arch=CHIPS[name])
    assert_same(result, expected)


@pytest.mark.parametrize("name", NARROW)
def test_each_operation_of_a_chain_is_rounded(name: str) -> None:
    x, y = pairs(name)
    result = computed(lambda a, b: (a + b) * b - a, x, y, out=name, arch=CHIPS[name])
    with np.errstate(all="ignore"):
        total = cast(x.astype(np.float32) + y.astype(np.float32), name)
        product = cast(total.astype(np.float32) * y.astype(np.float32), name)
        assert_same(result, cast(product.astype(np.float32) - x.astype(np.float32), name))


COMPARISONS: dict[str, Stage] = {
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "comparison"), drawn(product(NARROW, [*COMPARISONS, "eq", "ne", "isnan"]), 20)
)
def test_comparisons(name: str, comparison: str) -> None:
    x, y = pairs(name)
    wide = [v.astype(np.float32) for v in (x, y)]
    if comparison == "isnan":
        result = computed(lambda a, _: isnan(a).astype("int8"), x, y, out="int8",
                          arch=CHIPS[name])  # fmt: skip
        expected = np.isnan(wide[0])
    elif comparison in COMPARISONS:
        test = COMPARISONS[comparison]
        result = computed(lambda a, b: test(a, b).astype("int8"), x, y, out="int8",
                          arch=CHIPS[name])  # fmt: skip
        expected = test(*wide)
    else:
        node = {"eq": tirx.EQ, "ne": tirx.NE}[comparison]
        result = computed(lambda a, b: node(a, b).astype("int8"), x, y, out="int8",
                          arch=CHIPS[name])  # fmt: skip
        expected = wide[0] == wide[1] if comparison == "eq" else wide[0] != wide[1]
    np.testing.assert_array_equal(result, expected.astype(np.int8))


def chosen(x: Any, y: Any) -> Any:
    variable = tirx.Var("twice", x.dtype)
    twice = tirx.Let(variable, x + x, tirx.Select(variable < y, variable, y))
    return tirx.if_then_else(x < tirx.const(0, x.dtype), tirx.const(0.75, x.dtype), twice)


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("width", [1, 4])
def test_selections_constants_and_variables(name: str, width: int) -> None:
    x, y = pairs(name)
    result = computed(chosen, x, y, out=name, arch=CHIPS[name], width=width)
    with np.errstate(all="ignore"):
        twice = cast(x.astype(np.float32) * 2, name)
        smaller = np.where(twice.astype(np.float32) < y.astype(np.float32), twice, y)
        other = np.asarray(0.75, x.dtype)
        assert_same(result, np.where(x.astype(np.float32) < 0, other, smaller))


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("width", [1, 4])
def test_functions_of_narrow_types_are_those_of_float32_rounded(name: str, width: int) -> None:
    x = np.resize(patterns(name), 1 << 13)
    result = computed(tirx.exp, x, out=name, arch=CHIPS[name], width=width)
    exact = computed(tirx.exp, x.astype(np.float32), out="float32", arch=CHIPS[name])
    assert_same(result, cast(exact, name))


ELSEWHERE = [
    (name, arch)
    for name in NARROW[1:]
    for arch in ARCHITECTURES
    if arch not in ELEMENT_TYPES[name].chips
]
"""Eight-bit floats, and chips that do not convert them."""


@pytest.mark.parametrize(("name", "arch"), ELSEWHERE)
def test_a_chip_that_does_not_convert_eight_bits_computes_them(name: str, arch: str) -> None:
    values = np.resize(patterns(name), 1024)
    wide = computed(lambda x: x.astype("float32"), values, out="float32", arch=arch)
    assert_same(wide, values.astype(np.float32))
    generator = np.random.default_rng(4)
    anything = generator.integers(0, 2**32, 1 << 16, np.uint32).view(np.float32)
    close = generator.standard_normal(1 << 16) * np.exp2(generator.uniform(-20, 18, 1 << 16))
    numbers = np.concatenate([near(name), anything, close.astype(np.float32)])
    result = computed(lambda x: x.astype(name), numbers, out=name, arch=arch)
    assert_same(result, cast(numbers, name))
    x, y = pairs(name)
    with np.errstate(all="ignore"):
        total = cast(x.astype(np.float32) + y.astype(np.float32), name)
    assert_same(computed(lambda a, b: a + b, x, y, out=name, arch=arch, width=4), total)


@pytest.mark.parametrize("name", [
    "float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz", "float6_e2m3fn", "float6_e3m2fn",
    "float4_e2m1fn",
])  # fmt: skip
@pytest.mark.parametrize("stage", [lambda x: x.astype("float32"), lambda x: x + x])
def test_a_type_without_a_conversion_is_refused(name: str, stage: Stage) -> None:
    with pytest.raises(LoweringError, match=f"do not compute with {name}"):
        mfmadsl.build(schedule(lambda x: stage(x).astype("float32"), [(name, 256)]), "gfx950")


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_moving_needs_no_conversion(name: str, arch: str) -> None:
    x = np.resize(patterns(name), 1024)
    zero = tirx.const(0, name)
    result = computed(lambda v: tirx.if_then_else(True, v, zero), x, out=name, arch=arch, width=4)
    np.testing.assert_array_equal(result.view("u1"), x.view("u1"))
