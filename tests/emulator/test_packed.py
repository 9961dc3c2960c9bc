"""Packed instructions and dot products: several numbers a register."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.emulator.packed import DOT_PRODUCTS, MIXED, PAIRS_OF_F32, PAIRS_OF_HALVES
from tests.emulator.machine import executed, vector
from tests.emulator.manual.bits import is_nan, number, rounded, signed
from tests.emulator.manual.edges import values
from tests.emulator.manual.floats import FLOATS
from tests.emulator.manual.integers import INTEGERS

PAIRS = {"v[2:3]": np.array([[3, 5]], np.float32).repeat(64, 0).view(np.uint64)[:, 0]}
PAIRS["v[4:5]"] = np.array([[10, 20]], np.float32).repeat(64, 0).view(np.uint64)[:, 0]


def result(code: str) -> list[float]:
    waves = executed(code, PAIRS)
    return [float(vector(waves, i, np.float32)[17]) for i in (0, 1)]


def test_each_half_with_its_own() -> None:
    assert result("v_pk_add_f32 v[0:1], v[2:3], v[4:5]") == [13, 25]
    assert result("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]") == [30, 100]
    assert result("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[4:5]") == [40, 120]
    assert set(PAIRS_OF_F32) == {"v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"}


def test_halves_can_be_chosen_and_negated() -> None:
    chosen = "v_pk_add_f32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,0]"
    assert result(chosen) == [15, 13]
    assert result("v_pk_add_f32 v[0:1], v[2:3], v[4:5] neg_lo:[1,0] neg_hi:[0,1]") == [7, -15]


def test_a_move_takes_a_word_of_each_source() -> None:
    assert result("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]") == [3, 20]
    assert result("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]") == [5, 10]


def test_a_constant_is_both_words() -> None:
    assert result("v_pk_mul_f32 v[0:1], v[2:3], 2.0") == [6, 10]


@pytest.mark.parametrize("name", sorted(PAIRS_OF_HALVES))
@settings(max_examples=8, deadline=None)
@given(data=st.data(), selected=st.lists(st.integers(0, 1), min_size=6, max_size=6))
def test_two_halves(name: str, data: st.DataObject, selected: list[int]) -> None:
    """Each half is what the instruction for one of it gives (see `manual`)."""
    kind, count, _ = PAIRS_OF_HALVES[name]
    model = {**INTEGERS, **FLOATS}[name.replace("pk_", "")]
    half = values(kind)
    lanes = [data.draw(st.lists(half, min_size=128, max_size=128)) for _ in range(count)]
    registers = {
        f"v{i + 2}": np.array(v[:64], np.uint32) | np.array(v[64:], np.uint32) << np.uint32(16)
        for i, v in enumerate(lanes)
    }
    low, high = selected[:count], selected[3 : 3 + count]
    code = f"{name} v0, {', '.join(registers)} op_sel:{low} op_sel_hi:{high}".replace(", ", ",")
    code = code.replace("v0,", "v0, ").replace(",v", ", v")
    found = vector(executed(code, registers), 0)
    for lane in range(64):
        for shift, which in ((0, low), (16, high)):
            sources = [v[lane + 64 * w] for v, w in zip(lanes, which, strict=True)]
            expected, got = model(*sources) % 2**16, int(found[lane]) >> shift & 0xFFFF
            if kind == "f16":
                same = is_nan(expected, kind) and is_nan(got, kind)
                assert same or got == expected or number(got, kind) == number(expected, kind)
            else:
                assert got == expected


ELEMENTS = {"f16": 2, "bf16": 2, "i16": 2, "u16": 2, "i8": 4, "u8": 4, "i4": 8, "u4": 8}


@pytest.mark.parametrize("name", sorted(DOT_PRODUCTS))
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_dot_products(name: str, data: st.DataObject) -> None:
    kind, accumulates = DOT_PRODUCTS[name]
    count, bits = ELEMENTS[kind], int(kind.lstrip("bfiu"))
    floating = "f" in kind
    code = (
        st.floats(-8, 8).map(lambda x: rounded(x, kind))
        if floating
        else st.integers(0, 2**bits - 1)
    )
    a, b = (data.draw(st.lists(code, min_size=count, max_size=count)) for _ in range(2))
    c = data.draw(
        st.floats(-8, 8).map(lambda x: rounded(x, "f32")) if floating else st.integers(0, 99)
    )

    def word(codes: list[int]) -> np.ndarray:
        return np.full(64, sum(x << bits * i for i, x in enumerate(codes)), np.uint32)

    registers = {"v2": word(a), "v3": word(b), "v0" if accumulates else "v4": word([0])}
    registers["v0" if accumulates else "v4"] = np.full(64, c, np.uint32)
    suffix = "" if accumulates else ", v4"
    found = int(vector(executed(f"{name} v0, v2, v3{suffix}", registers), 0)[9])
    if floating:
        exact = sum(
            Fraction(number(x, kind)) * Fraction(number(y, kind)) for x, y in zip(a, b, strict=True)
        )
        assert number(found, "f32") == pytest.approx(
            float(exact + Fraction(number(c, "f32"))), abs=1e-5
        )
        return
    read = (lambda x: signed(x, bits)) if kind[0] == "i" else (lambda x: x)
    total = sum(read(x) * read(y) for x, y in zip(a, b, strict=True)) + c
    assert found == total % 2**32


def test_a_dot_product_saturates_if_it_clamps() -> None:
    registers = {"v2": np.full(64, 0x7F7F7F7F, np.uint32), "v4": np.full(64, 2**31 - 9, np.uint32)}
    assert vector(executed("v_dot4_i32_i8 v0, v2, v2, v4 clamp", registers), 0)[0] == 2**31 - 1


@pytest.mark.parametrize("name", sorted(MIXED))
def test_mixed_sources(name: str) -> None:
    """v_fma_mix: 3 (a half) * 5 (the other) + 0.5 (a float)."""
    pair = np.array([3, 5], np.float16).view(np.uint32).repeat(64)
    registers = {
        "v0": np.full(64, 0xAAAABBBB, np.uint32),
        "v2": pair,
        "v3": np.full(64, 0.5, np.float32),
    }
    code = f"{name} v0, v2, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]"
    found = vector(executed(code, registers), 0)[5]
    half = int(np.float16(15.5).view(np.uint16))
    expected = {
        "mix_f32": int(np.float32(15.5).view(np.uint32)),
        "mixlo_f16": 0xAAAA0000 | half,
        "mixhi_f16": half << 16 | 0xBBBB,
    }
    assert found == expected[MIXED[name]]
