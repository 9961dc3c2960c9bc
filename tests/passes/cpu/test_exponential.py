"""The polynomial exp: its proof in exact fractions, its numbers, and where the pass puts it."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.target.codegen import llvm_get_system_cpu

from benchmarks.exponential import Exp, Floats, Worst, compiled_exp, errors, worst
from mfmadsl.passes.cpu import exponential as subject
from mfmadsl.passes.cpu.exponential import (
    BOUND,
    COEFFICIENTS,
    LARGEST,
    LEAST,
    LN_2,
    LOG2_E,
    MOST,
    REMAINDER,
    UNIT_IS_ONE,
    expand_exponentials,
    exponential,
)
from mfmadsl.passes.tir.error import LoweringError

UNIT = Fraction(1, 2**24)
LN2 = Fraction("0.69314718055994530941723212145817656807550013436026")
"""To 50 places."""
COUNT = 1 << 20
WITHOUT_FMA = "x86-64"
CPUS = sorted({llvm_get_system_cpu(), WITHOUT_FMA})

Polynomial = list[Fraction]


def at(polynomial: Polynomial, x: Fraction) -> Fraction:
    value = Fraction(0)
    for coefficient in reversed(polynomial):
        value = value * x + coefficient
    return value


def derived(polynomial: Polynomial) -> Polynomial:
    return [power * coefficient for power, coefficient in enumerate(polynomial)][1:]


def remainder(coefficients: tuple[float, ...], intervals: int) -> Fraction:
    """An upper bound of |e^r - 1 - r - r^2 q(r)| / e^r for |r| <= LARGEST, without any rounding.

    e^r is its Taylor polynomial of degree 14, and no more than twice the next term. A polynomial d
    on an interval of half width h around c is below |d(c)| + h |d'(c)| + h^2 / 2 max |d''|.
    """
    largest, top = Fraction(LARGEST), 14
    q = [Fraction(c) for c in coefficients]
    d = [Fraction(0), Fraction(0)] + [
        Fraction(1, factorial(k)) - (q[k - 2] if k - 2 < len(q) else 0) for k in range(2, top + 1)
    ]
    slope = derived(d)
    bent = sum(abs(c) * largest**k for k, c in enumerate(derived(slope)))
    beyond = 2 * largest ** (top + 1) / factorial(top + 1)
    falling = [Fraction((-1) ** k, factorial(k)) for k in range(12)]
    h = largest / intervals
    found = Fraction(0)
    for number in range(-intervals, intervals, 2):
        c = h * (number + 1)
        size = abs(at(d, c)) + h * abs(at(slope, c)) + h * h / 2 * bent + beyond
        inverse = at(falling, c) + 2 * largest**12 / factorial(12)  # of e^c
        found = max(found, size * inverse * (1 + 2 * h))
    return found


def test_the_remainder_of_the_polynomial_is_below_its_bound() -> None:
    assert remainder(COEFFICIENTS, 1024) <= Fraction(REMAINDER)


@pytest.mark.parametrize("number", range(len(COEFFICIENTS)))
def test_a_coefficient_off_by_a_thousandth_is_not(number: int) -> None:
    changed = list(COEFFICIENTS)
    changed[number] *= 1.001
    assert remainder(tuple(changed), 64) > Fraction(REMAINDER)


def test_r_is_within_its_bound() -> None:
    """|x / ln 2 - n| is 1/2, and what rounding the product, LOG2_E and ln 2 add."""
    furthest = -Fraction(LEAST)
    product = furthest * Fraction(LOG2_E)
    off = product * UNIT + furthest * abs(1 / LN2 - Fraction(LOG2_E))
    n = round(product)
    parts = abs(LN2 - Fraction(LN_2[0]) - Fraction(LN_2[1])) * n
    rounding = Fraction(2) ** -26 + Fraction(2) ** -37  # of r, and of n times the second part
    assert LN2 * (Fraction(1, 2) + off) + parts + rounding < Fraction(LARGEST)


def test_what_is_taken_for_exact_is() -> None:
    n = round(-LEAST / float(LN2))
    assert n == 150
    first = Fraction(LN_2[0]) * 2**15
    assert first.denominator == 1
    assert n * first < 2**24
    assert n < 2**22  # so that UNIT_IS_ONE + n is between 2^23 and 2^24
    assert int(np.float32(UNIT_IS_ONE).view(np.int32)) == 0x4B400000
    for number in (LEAST, MOST, LOG2_E, *LN_2, *COEFFICIENTS):
        assert float(np.float32(number)) == number


def test_the_docstring_adds_up() -> None:
    below = Fraction("0.5") + Fraction("0.25") + Fraction("0.25") * Fraction("0.78")
    below += 3 * Fraction("0.0546") + Fraction("0.001") + Fraction("0.053")
    above = 1 + Fraction("0.25") + Fraction("0.25") * Fraction("1.4144")
    above += Fraction("3.4") * Fraction("0.0682") + Fraction("0.001")
    above += Fraction("0.053") * Fraction("1.4144")
    assert below < Fraction("1.17")
    assert above < Fraction("1.92")
    assert max(below, above / 2, below / 2 + Fraction("0.5")) < Fraction(BOUND)


def test_the_docstring_s_sizes_are_those_of_the_functions() -> None:
    """r^2 q(r) = e^r - 1 - r but for the remainder; it is largest at the ends."""
    end = LARGEST
    assert np.exp(-end) - 1 + end < 0.0546
    assert np.exp(end) - 1 - end < 0.0682
    assert 1 - np.exp(-end) < 0.5
    assert np.exp(end) - 1 < 0.5
    assert np.exp(-0.25) < 0.78  # where |r| is below 1/4, its last place is half as large
    assert np.exp(end) < 1.4144 * (1 + 1e-3)


# Numbers.


@pytest.fixture(scope="module", params=CPUS)
def compiled(request: pytest.FixtureRequest) -> tuple[Any, Exp]:
    """The exp for this CPU, and for one that has no FMA, whose code this one runs, too."""
    return compiled_exp(COUNT, request.param)


def sample() -> Floats:
    """Of all floats one of each 2^13 or so in turn, and what is next to each boundary."""
    spread = np.arange(COUNT, dtype=np.uint64) * 4099 % 2**32
    chosen = spread.astype(np.uint32).view(np.float32)
    near = np.array(
        [
            *((n + 0.5) * float(LN2) for n in range(-151, 130)),
            *(n * float(LN2) for n in range(-151, 130)),
            LEAST, MOST, 88.7228391, -87.3365447, -103.278929, -103.972084,
        ],
        dtype=np.float32,
    )  # fmt: skip
    steps = np.arange(-40, 41, dtype=np.int32)[:, None]
    beside = (near.view(np.int32) + steps).view(np.float32).ravel()
    chosen[: len(beside)] = beside
    return chosen


def test_no_number_of_a_sample_is_further_off_than_the_bound(compiled: tuple[Any, Exp]) -> None:
    found = worst(compiled[1], sample())
    assert 0.5 < found.error < BOUND, found


def test_numbers_everywhere_between(compiled: tuple[Any, Exp]) -> None:
    generator = np.random.default_rng(2048)
    x = generator.uniform(-110, 95, COUNT).astype(np.float32)
    found = worst(compiled[1], x)
    assert 0.5 < found.error < BOUND, found


EXACT = {
    "nan": (np.nan, np.nan),
    "minus nan": (-np.nan, np.nan),
    "infinity": (np.inf, np.inf),
    "minus infinity": (-np.inf, 0.0),
    "zero": (0.0, 1.0),
    "minus zero": (-0.0, 1.0),
    "the least subnormal": (2.0**-149, 1.0),
    "the largest number": (3.4028235e38, np.inf),
    "minus the largest number": (-3.4028235e38, 0.0),
    "the first that overflows": (88.7228470, np.inf),
    "the last that does not vanish": (-103.972076, 2.0**-149),
    "the first that does": (-103.972084, 0.0),
}


@pytest.mark.parametrize("name", EXACT)
def test_special_values_stand_in_every_lane(name: str, compiled: tuple[Any, Exp]) -> None:
    given, expected = EXACT[name]
    x = np.linspace(-3, 3, COUNT, dtype=np.float32)
    places = np.arange(0, COUNT, 4097)  # every lane of 16 in turn
    x[places] = given
    y = compiled[1](x)
    np.testing.assert_array_equal(y[places], np.float32(expected))
    assert errors(x, y).max() < BOUND


def test_the_last_finite_result_and_subnormal_ones(compiled: tuple[Any, Exp]) -> None:
    x = np.linspace(-103.9, -87.4, COUNT, dtype=np.float32)
    x[7] = 88.7228317
    y = compiled[1](x)
    assert np.isfinite(y[7])
    assert y[7] > 3.4e38
    small = np.delete(y, 7)
    assert ((small > 0) & (small < 2.0**-126)).all()
    assert errors(x, y).max() < BOUND


def test_a_planted_fault_is_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """ln 2 in one part only, and a polynomial of a degree less."""
    cpu = llvm_get_system_cpu()
    with monkeypatch.context() as patch:
        patch.setattr(subject, "LN_2", (LN_2[0], 0.0))
        assert worst(compiled_exp(COUNT, cpu)[1], sample()).error > 100
    with monkeypatch.context() as patch:
        patch.setattr(subject, "COEFFICIENTS", (0.5, 1 / 6, 1 / 24, 1 / 120))
        assert worst(compiled_exp(COUNT, cpu)[1], sample()).error > 2 * BOUND


def test_an_error_is_counted_in_units_of_the_exact_value() -> None:
    x = np.array([0, 0, -104, 89, 89, 1, np.nan, np.nan], np.float32)
    y = np.array([1, 1 + 2**-22, 2.0**-149, np.inf, 3.4028235e38, np.nan, np.nan, 1], np.float32)
    found = errors(x, y)
    assert list(found[:2]) == [0, 2]
    assert found[2] == pytest.approx(1 - np.exp(-104.0) * 2.0**149)
    assert list(found[3:]) == [0, 1, np.inf, 0, np.inf]
    assert worst(lambda _: y, x) == Worst(np.inf, 1.0)


# The machine code, and where the pass puts it.


def test_the_machine_code_is_vectors_and_calls_nothing(compiled: tuple[Any, Exp]) -> None:
    text = compiled[0].mod.inspect_source("asm")
    assert "expf" not in text
    assert "mulps" in text


def function(dtype: str, lanes: int = 1) -> tvm.IRModule:
    """y = exp(x) of 32 numbers, in vectors of so many."""
    x, y = (tirx.decl_buffer((32,), dtype, name) for name in "xy")
    i = tirx.Var("i", "int32")
    index = i * lanes if lanes == 1 else tirx.Ramp(i * lanes, tirx.const(1, "int32"), lanes)
    body = tirx.BufferStore(y, tirx.exp(tirx.BufferLoad(x, [index])), [index])
    loop = tirx.For(i, 0, 32 // lanes, tirx.ForKind.SERIAL, body)
    return tvm.IRModule({
        "main": tirx.PrimFunc([x, y], loop).with_attr({"global_symbol": "main", "s_tir": True})
    })  # fmt: skip


def calls_of_exp(module: tvm.IRModule) -> int:
    found = []

    def note(call: tvm.ir.Call) -> None:
        if str(getattr(call.op, "name", "")) == "tirx.exp":
            found.append(call)

    tvm_ffi.structural_walk(module["main"].body, (tvm.ir.Call, note))
    return len(found)


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_scalars_and_vectors_of_float32_are_expanded(lanes: int) -> None:
    before = function("float32", lanes)
    assert calls_of_exp(before) == 1
    after = expand_exponentials()(before)
    assert calls_of_exp(after) == 0
    x = np.linspace(-90, 80, 32, dtype=np.float32)
    y = tvm.runtime.empty((32,), "float32")
    target = Target({"kind": "llvm", "mcpu": llvm_get_system_cpu()})
    tvm.compile(after, target=target)["main"](tvm.runtime.tensor(x), y)
    assert errors(x, y.numpy()).max() < BOUND


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_types_are_left_alone(dtype: str) -> None:
    assert calls_of_exp(expand_exponentials()(function(dtype))) == 1


def test_a_function_for_a_gpu_is_left_alone() -> None:
    module = function("float32")
    cuda = Target({"kind": "cuda", "arch": "sm_90"})
    on_gpu = tvm.IRModule({"main": module["main"].with_attr("target", cuda)})
    assert calls_of_exp(expand_exponentials()(on_gpu)) == 1
    cpu = Target({"kind": "llvm"})
    on_cpu = tvm.IRModule({"main": module["main"].with_attr("target", cpu)})
    assert calls_of_exp(expand_exponentials()(on_cpu)) == 0


def test_an_exp_within_an_exp_is_expanded_as_well() -> None:
    x = te.placeholder((32,), name="x", dtype="float32")
    y = te.compute((32,), lambda i: te.exp(-te.exp(x[i])), name="y")
    module = expand_exponentials()(Schedule(te.create_prim_func([x, y])).mod)
    assert calls_of_exp(module) == 0
    numbers = np.linspace(-5, 3, 32, dtype=np.float32)
    result = tvm.runtime.empty((32,), "float32")
    tvm.compile(module, target=Target({"kind": "llvm"}))["main"](
        tvm.runtime.tensor(numbers), result
    )
    expected = np.exp(-np.exp(numbers.astype(np.float64)))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "bfloat16"])
def test_an_expression_of_another_type_is_refused(dtype: str) -> None:
    with pytest.raises(LoweringError, match=f"is of float32, not of {dtype}"):
        exponential(tirx.Var("x", dtype))
