"""Comparisons against Python's, for every relation and type."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.compare import COMPARE
from mfmadsl.emulator.text.operand import EXEC, VCC
from tests.emulator.instructions.manual.bits import number, signed
from tests.emulator.instructions.manual.edges import values
from tests.emulator.waves import executed

PYTHON: dict[str, Callable[[float, float], bool]] = {
    "f": lambda a, b: False,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "t": lambda a, b: True,
    "tru": lambda a, b: True,
    "lg": lambda a, b: a < b or a > b,
    "neq": lambda a, b: a != b,
    "nlg": lambda a, b: not (a < b or a > b),
    "ngt": lambda a, b: not a > b,
    "nge": lambda a, b: not a >= b,
    "nlt": lambda a, b: not a < b,
    "nle": lambda a, b: not a <= b,
    "o": lambda a, b: not (math.isnan(a) or math.isnan(b)),
    "u": lambda a, b: math.isnan(a) or math.isnan(b),
}
NAMES = sorted(name for name in COMPARE if "class" not in name)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_relations(name: str, data: st.DataObject) -> None:
    _, _, relation, kind = name.split("_")
    size = int(kind[1:])
    lane = st.lists(values(kind), min_size=64, max_size=64)
    a, b = data.draw(lane), data.draw(lane)
    b = [x if data.draw(st.booleans()) else y for x, y in zip(a[:8], b[:8], strict=True)] + b[8:]
    dtype = np.uint64 if size == 64 else np.uint32
    registers = ("v[2:3]", "v[4:5]") if size == 64 else ("v2", "v4")
    inputs = dict(zip(registers, (np.array(a, dtype), np.array(b, dtype)), strict=True))
    waves = executed(f"{name}_e32 vcc, {registers[0]}, {registers[1]}", inputs)

    def read(x: int) -> float:
        if kind[0] == "f":
            return number(x, kind)
        return signed(x, size) if kind[0] == "i" else x

    expected = [PYTHON[relation](read(x), read(y)) for x, y in zip(a, b, strict=True)]
    found = int(waves.scalar[VCC, 0]) | int(waves.scalar[VCC + 1, 0]) << 32
    assert [bool(found >> i & 1) for i in range(64)] == expected
    if name.startswith("v_cmpx"):
        active = int(waves.scalar[EXEC, 0]) | int(waves.scalar[EXEC + 1, 0]) << 32
        assert active == found


def classes(bits: int, kind: str) -> int:
    """The class of a float as the bit of the manual's table."""
    x, size = number(bits, kind), int(kind[1:])
    mantissa = {16: 10, 32: 23, 64: 52}[size]
    if math.isnan(x):
        return 2 if bits >> (mantissa - 1) & 1 else 1
    negative = bits >> (size - 1)
    if math.isinf(x):
        return 4 if negative else 512
    if x == 0:
        return 32 if negative else 64
    if not bits >> mantissa & ((1 << (size - 1 - mantissa)) - 1):
        return 16 if negative else 128
    return 8 if negative else 256


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@given(data=st.data(), wanted=st.integers(0, 1023))
def test_classes(kind: str, data: st.DataObject, wanted: int) -> None:
    lanes = data.draw(st.lists(values(kind), min_size=64, max_size=64))
    wide = kind == "f64"
    register = "v[2:3]" if wide else "v2"
    inputs = {register: np.array(lanes, np.uint64 if wide else np.uint32),
              "v4": np.full(64, wanted, np.uint32)}  # fmt: skip
    waves = executed(f"v_cmp_class_{kind}_e64 s[4:5], {register}, v4", inputs)
    found = int(waves.scalar[4, 0]) | int(waves.scalar[5, 0]) << 32
    assert [found >> i & 1 for i in range(64)] == [
        int(classes(x, kind) & wanted > 0) for x in lanes
    ]


def test_every_comparison_is_tested() -> None:
    tested = {name for name in NAMES if name.split("_")[2] in PYTHON}
    tested |= {f"v_{cmp}_class_{kind}" for cmp in ("cmp", "cmpx") for kind in ("f16", "f32", "f64")}
    assert tested == set(COMPARE)


def test_a_comparison_that_would_tell_an_exception_compares_all_the_same() -> None:
    """Its clamp bit asks for that (CDNA3 ISA, section 6.2); of integers it means nothing."""
    lanes = np.array([1, np.nan, -3, 0] * 16, np.float32)
    for modifier in ("", " clamp"):
        waves = executed(f"v_cmp_nlt_f32_e64 s[4:5], v2, 1.0{modifier}", {"v2": lanes})
        assert waves.scalar[4, 0] == int("0011" * 8, 2)
    with pytest.raises(EmulationError, match="unknown instruction"):
        executed("v_cmp_lt_i32_e64 s[4:5], v2, 1 clamp", {"v2": lanes})
