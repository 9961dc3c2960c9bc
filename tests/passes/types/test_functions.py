"""`expand_functions`: functions of floats are as exact as their table says, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import tirx

import mfmadsl
from mfmadsl.model.numpy_type import numpy_type
from tests.passes.kernels import computed, schedule, ulps

COUNT = 1 << 12
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1e-45, -1e-45, 1e-40, -1e30,
     88.72284, 88.73, -87.4, -103.9, -104.5, 127.99, 128, -149.5, -151, 38.6, -45.5, 2**24 + 1],
    np.float32,
)  # fmt: skip


def spread(*bounds: float) -> Any:
    """Random numbers between pairs of bounds, random bits, denormals and special numbers."""
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**32, COUNT, np.uint32).view(np.float32)
    denormal = generator.integers(1, 2**23, COUNT, np.uint32).view(np.float32)
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    between = [generator.uniform(*pair, COUNT).astype(np.float32) for pair in pairs]
    return np.concatenate([*between, bits, np.abs(bits), denormal, np.resize(SPECIAL, 256)])


def turns() -> Any:
    """Those of `spread`, but none of 2^50 and more; and positions of a long text, as RoPE has."""
    x = spread(-300, 300, -1e12, 1e12)[::2]
    positions = np.arange(0, 1 << 20, 1021).astype(np.float32)
    return np.concatenate([x[~(np.abs(x) >= 2.0**50) | np.isinf(x)], positions])


def sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], float, Any]] = {
    "exp": (tirx.exp, np.exp, 1.0, spread(-105, 90, -1, 1)),
    "exp2": (tirx.exp2, np.exp2, 0.75, spread(-151, 129, -1, 1)),
    "exp10": (tirx.exp10, lambda x: 10.0**x, 1.0, spread(-46, 39, -1, 1)),
    "log": (tirx.log, np.log, 1.2, spread(0.5, 2)),
    "log2": (tirx.log2, np.log2, 0.75, spread(0.5, 2)),
    "log10": (tirx.log10, np.log10, 1.2, spread(0.5, 2)),
    "sqrt": (tirx.sqrt, np.sqrt, 0.5, spread(0, 4)),
    "rsqrt": (tirx.rsqrt, lambda x: 1 / np.sqrt(x), 0.5, spread(0, 4)),
    "sigmoid": (tirx.sigmoid, sigmoid, 2.5, spread(-105, 105, -5, 5)),
    "tanh": (tirx.tanh, np.tanh, 1.5, spread(-10, 10, -1, 1)),
    "sin": (tirx.sin, np.sin, 0.501, turns()),
    "cos": (tirx.cos, np.cos, 0.501, turns()),
    "erf": (tirx.erf, np.vectorize(math.erf, otypes=[float]), 0.95, spread(-4.5, 4.5, -1, 1)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_functions_are_as_exact_as_is_said(name: str, dtype: str) -> None:
    function, exact, bound, x = CASES[name]
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        found = ulps(computed(function, x, out=dtype), exact(x.astype(np.float64)))
    worst = x[np.argmax(found)]
    assert found.max() <= (bound if dtype == "float32" else 0.501), worst


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sigmoid", "rsqrt"])
def test_a_vectorized_loop_computes_the_same(name: str) -> None:
    function, _, _, x = CASES[name]
    scalar, vector = (computed(function, x, out="float32", width=width) for width in (1, 4))
    np.testing.assert_array_equal(vector, scalar)


@pytest.mark.parametrize("function", [tirx.sin, tirx.cos])
def test_of_numbers_that_are_known_to_millions_of_turns_there_is_no_sine(function: Any) -> None:
    large = np.array([2.0**50, -(2.0**50), 1e30, np.inf, np.nan] * 4, np.float32)
    assert np.isnan(computed(function, large, out="float32")).all()


@pytest.mark.parametrize("width", [1, 4])
def test_an_exponential_that_is_rounded_to_float16_at_once(width: int) -> None:
    def rounded(x: Any) -> Any:
        return tirx.exp2(x).astype("float16")

    x = spread(-151, 129, -27, 17, -1, 1)
    with np.errstate(all="ignore"):
        expected = computed(tirx.exp2, x, out="float32").astype(np.float16)
    np.testing.assert_array_equal(computed(rounded, x, out="float16", width=width), expected)
    kernel = mfmadsl.build(schedule(rounded, [("float32", 256)]))
    assert "v_exp_f32" in kernel.assembly
    assert "v_ldexp" not in kernel.assembly


ROUNDINGS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "round": (tirx.round, np.rint), "nearbyint": (tirx.nearbyint, np.rint),
    "floor": (tirx.floor, np.floor), "ceil": (tirx.ceil, np.ceil),
    "trunc": (tirx.trunc, np.trunc), "fabs": (tirx.abs, np.abs), "sqrt": (tirx.sqrt, np.sqrt),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_roundings_and_roots_are_exact(name: str, dtype: str) -> None:
    function, exact = ROUNDINGS[name]
    with np.errstate(all="ignore"):
        x = np.concatenate([spread(-9, 9), np.resize(np.arange(-64, 64) / 2, 256)])
        x = x.astype(dtype)
        expected = exact(x)
    np.testing.assert_array_equal(computed(function, x, out=dtype), expected)


@pytest.mark.parametrize("exponent", [2, 3, 4, 5, 2.5])
def test_small_whole_exponents_are_products(exponent: float) -> None:
    """They take a few instructions, where any other takes more than a hundred."""
    power = schedule(lambda x: tirx.pow(x, tirx.const(exponent, "float32")), [("float32", 1024)])
    lines = mfmadsl.build(power).assembly.partition("s_endpgm")[0].splitlines()
    count = sum(line.startswith("\tv_") for line in lines)
    assert (count < 25) == (exponent in (2, 3, 4)), count


def test_the_classes_of_numbers() -> None:
    x = spread()
    for function, exact in ((tirx.isnan, np.isnan), (tirx.isinf, np.isinf),
                            (tirx.isfinite, np.isfinite)):  # fmt: skip
        result = computed(lambda v, test=function: test(v).astype("int8"), x, out="int8")
        np.testing.assert_array_equal(result, exact(x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_is_unequal_to_all(dtype: str) -> None:
    with np.errstate(all="ignore"):
        x, y = (f(SPECIAL, len(SPECIAL)).astype(dtype)[:768] for f in (np.repeat, np.tile))
    result = computed(lambda a, b: tirx.NE(a, b).astype("int8"), x, y, out="int8")
    np.testing.assert_array_equal(result, x != y)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "float8_e5m2fnuz"])
@pytest.mark.parametrize("width", [1, 4])
def test_of_nan_and_a_number_max_and_min_are_the_number(dtype: str, width: int) -> None:
    special = [0, 1, -1, 2, -3, 0.5, np.inf, -np.inf, np.nan, -np.nan, 1e-2, 40, -40]
    numbers = np.array(special).astype(numpy_type(dtype))
    x, y = (np.resize(f(numbers, len(numbers)), 1024) for f in (np.repeat, np.tile))
    wide = [v.astype(np.float64) for v in (x, y)]
    for function, exact in ((tirx.max, np.fmax), (tirx.min, np.fmin)):
        result = computed(function, x, y, out=dtype, width=width)
        np.testing.assert_array_equal(result.astype(np.float64), exact(*wide))
        for ends in (
            lambda v, f=function: f(v, tirx.const(0, v.dtype)),
            lambda v, f=function: f(tirx.const(0, v.dtype), v),
        ):
            result = computed(ends, x, out=dtype, width=width)
            np.testing.assert_array_equal(result.astype(np.float64), exact(wide[0], 0))


def test_max_of_what_was_computed_is_one_instruction() -> None:
    def relu(x: Any) -> Any:
        return tirx.max(x + tirx.const(1, "float32"), tirx.const(0, "float32"))

    kernel = mfmadsl.build(schedule(relu, [("float32", 256)]))
    assert kernel.assembly.count("v_max_f32") == 1
    assert "v_cndmask" not in kernel.assembly


def power_of(x: Any, y: Any) -> Any:
    """C's pow: NumPy's takes a root instead where all exponents are one half."""
    with np.errstate(all="ignore"):
        return np.power(*np.broadcast_arrays(x.astype(np.float64), np.asarray(y, np.float64)))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 5, 9, 31, 128, -1, -2, -3, -31, 2.5, -0.5])
def test_a_constant_power(exponent: float) -> None:
    x = spread(-5, 5, -1.1, 1.1)
    result = computed(lambda v: tirx.power(v, tirx.const(exponent, "float32")), x, out="float32")
    bound = {3.0: 1.5, 4.0: 2.0}.get(exponent, 0.5001)
    assert ulps(result, power_of(x, np.full(len(x), exponent))).max() <= bound


def test_a_power_that_is_computed() -> None:
    generator = np.random.default_rng(1)
    pairs: list[tuple[Any, Any]] = [
        (np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))),
        (generator.uniform(-9, 9, COUNT), np.rint(generator.uniform(-40, 40, COUNT))),
        (generator.uniform(0, 50, COUNT), generator.uniform(-20, 20, COUNT)),
        (np.exp2(generator.uniform(-0.01, 0.01, COUNT)), generator.uniform(-9000, 9000, COUNT)),
        (-np.ones(COUNT), np.rint(generator.uniform(-(2**25), 2**25, COUNT))),
    ]
    length = sum(len(x) for x, _ in pairs) // 256 * 256
    x, y = (np.concatenate(each)[-length:].astype(np.float32) for each in zip(*pairs, strict=True))
    result = computed(tirx.power, x, y, out="float32")
    assert ulps(result, power_of(x, y)).max() <= 0.5001


def test_functions_of_functions_do_not_grow() -> None:
    def deep(x: Any) -> Any:
        for _ in range(6):
            x = tirx.power(tirx.tanh(x), tirx.const(3, "float32"))
        return x

    kernel = mfmadsl.build(schedule(deep, [("float32", 256)]))
    assert len(kernel.llvm_ir) < 30000


@pytest.mark.parametrize(
    ("function", "dtype", "message"),
    [
        (tirx.tan, "float32", "what is stored in `out`: `tan` of float32 is none of the functions"),
        (tirx.exp, "float64", "what is stored in `out`: `exp` of float64 is none of the functions"),
        (tirx.atanh, "bfloat16", "what is stored in `out`: `atanh` of float32 is none"),
    ],
)
def test_a_function_that_is_nowhere_is_refused(
    function: Callable[..., Any], dtype: str, message: str
) -> None:
    with pytest.raises(mfmadsl.LoweringError, match=message):
        mfmadsl.build(schedule(function, [(dtype, 256)]))
