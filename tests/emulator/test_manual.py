"""Every row of the vector instruction table against a model of one lane, from the manual."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mfmadsl.emulator.row import Row
from mfmadsl.emulator.vector import vector_rows
from mfmadsl.emulator.wave import width_of
from tests.emulator.machine import executed, vector
from tests.emulator.manual.bits import FORMATS, is_nan, number, rounded
from tests.emulator.manual.conversions import CONVERSIONS
from tests.emulator.manual.floats import FLOATS, TRANSCENDENTAL, apart
from tests.emulator.manual.integers import INTEGERS

ROWS = vector_rows("gfx950")
MODELS: dict[str, Callable[..., int]] = {**INTEGERS, **FLOATS, **CONVERSIONS}
LANES = 64


def values(kind: str) -> st.SearchStrategy[int]:
    """Bits of a type, with those that are special in it."""
    bits = width_of(kind)
    everything = st.integers(0, 2**bits - 1)
    if kind[0] != "f":
        edges = st.sampled_from([0, 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1])
        return everything | edges | st.integers(0, 64)
    usual = st.floats(-300, 300).map(lambda x: rounded(x, kind))
    exponent, mantissa = FORMATS[kind]
    tiny = st.integers(0, 1 << mantissa)
    infinite = st.sampled_from([0, 1]).map(
        lambda s: s << (bits - 1) | ((1 << exponent) - 1) << mantissa
    )
    return everything | usual | usual | tiny | infinite


def sources(row: Row, data: st.DataObject) -> list[list[int]]:
    return [data.draw(st.lists(values(kind), min_size=LANES, max_size=LANES)) for kind in row.kinds]


def run(name: str, row: Row, lanes: list[list[int]]) -> list[int]:
    """The result of an instruction, at the register v[0:1]."""
    registers = {}
    names = []
    for i, (kind, bits) in enumerate(zip(row.kinds, lanes, strict=True)):
        wide = width_of(kind) == 64
        register = f"v[{2 * i + 2}:{2 * i + 3}]" if wide else f"v{2 * i + 2}"
        registers[register] = np.array(bits, np.uint64 if wide else np.uint32)
        names.append(register)
    target = "v[0:1]" if wide_result(name, row) else "v0"
    if row.accumulates:
        registers[target] = registers.pop(names.pop())
    waves = executed(f"{name} {target}, {', '.join(names)}", registers)
    found = vector(waves, 0, np.uint64 if wide_result(name, row) else np.uint32)
    return [int(x) for x in found]


def wide_result(name: str, row: Row) -> bool:
    zeros = [np.zeros(1, f"u{width_of(kind) // 8}") for kind in row.kinds]
    typed = [
        z.view({"f": f"f{z.itemsize}", "i": f"i{z.itemsize}"}.get(kind[0], z.dtype))
        for z, kind in zip(zeros, row.kinds, strict=True)
    ]
    with np.errstate(all="ignore"):
        return np.asarray(row.compute(*typed)).itemsize == 8


def test_every_row_has_a_model() -> None:
    tested_elsewhere = {name for name in ROWS if "fp8" in name or "bf8" in name or "fp4" in name}
    assert set(MODELS) == set(ROWS) - tested_elsewhere


@pytest.mark.parametrize("name", sorted(INTEGERS))
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_integers(name: str, data: st.DataObject) -> None:
    row = ROWS[name]
    lanes = sources(row, data)
    size = 16 if {width_of(kind) for kind in row.kinds} == {16} else 32
    size = 64 if wide_result(name, row) else size
    expected = [MODELS[name](*lane) % 2**size for lane in zip(*lanes, strict=True)]
    assert run(name, row, lanes) == expected


def result_kind(name: str) -> str:
    """The float type of a result, or nothing: it stands first in conversions, last elsewhere."""
    if name.startswith(("v_frexp_exp", "v_cvt_pk", "v_pack", "v_cvt_i", "v_cvt_u", "v_cvt_rpi",
                        "v_cvt_flr")):  # fmt: skip
        return ""
    parts = name.split("_")
    return parts[2] if name.startswith("v_cvt") else parts[-1]


@pytest.mark.parametrize("name", sorted({**FLOATS, **CONVERSIONS}))
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_floats(name: str, data: st.DataObject) -> None:
    row, kind = ROWS[name], result_kind(name)
    lanes = sources(row, data)
    for lane, found in zip(zip(*lanes, strict=True), run(name, row, lanes), strict=True):
        expected = MODELS[name](*lane)
        if not kind:
            narrow = 2**16 if name.endswith("_f16") and name.startswith(("v_cvt", "v_fre")) else M
            assert packed_equal(name, found, expected % narrow), (name, lane)
        elif is_nan(expected, kind):
            assert is_nan(found, kind), (name, lane, found)
        elif name in TRANSCENDENTAL and not math.isinf(number(expected, kind)):
            assert apart(found, expected, kind) <= 1 or periodic(name, lane), (name, lane)
        else:
            assert found == expected or equal_zeros(found, expected, kind), (name, lane)


M = 2**32


def equal_zeros(a: int, b: int, kind: str) -> bool:
    """The signs of zeros are compared nowhere: the manual says little of them."""
    return number(a, kind) == number(b, kind) == 0


def periodic(name: str, lane: tuple[int, ...]) -> bool:
    """Of a sine or cosine of much: there a float's own spacing exceeds the period."""
    return name.startswith(("v_sin", "v_cos"))


def packed_equal(name: str, found: int, expected: int) -> bool:
    """Two halves side by side, of which NaN has many forms."""
    if found == expected:
        return True
    kind = "bf16" if "bf16" in name else "f16"
    if not name.startswith(("v_cvt_pk", "v_pack")):
        return False
    return all(
        (found >> s & 0xFFFF) == (expected >> s & 0xFFFF)
        or (is_nan(found >> s & 0xFFFF, kind) and is_nan(expected >> s & 0xFFFF, kind))
        for s in (0, 16)
    )
