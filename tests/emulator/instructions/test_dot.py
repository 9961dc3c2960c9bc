"""Dot products of the elements of registers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.dot import DOT_PRODUCTS
from tests.emulator.instructions.manual.bits import number, rounded, signed
from tests.emulator.waves import executed, vector

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


def test_elements_of_dot_products_are_negated() -> None:
    registers = {"v2": np.array([3, 5], np.float16).view(np.uint32).repeat(64),
                 "v3": np.full(64, 100, np.float32)}  # fmt: skip
    for flags, expected in (
        ("neg_lo:[1,0,0]", 100 - 9 + 25),
        ("neg_hi:[0,1,0]", 100 + 9 - 25),
        ("neg_lo:[1,1,1]", -100 + 9 + 25),
        ("clamp", 1),
    ):
        waves = executed(f"v_dot2_f32_f16 v0, v2, v2, v3 {flags}", registers)
        assert vector(waves, 0, np.float32)[2] == expected


@pytest.mark.parametrize(
    "code",
    [
        "v_dot2_f32_f16 v0, v2, v2, v3 op_sel:[1,0,0]",
        "v_dot4_i32_i8 v0, v2, v2, v3 neg_lo:[1,0,0]",
        "v_dot4c_i32_i8 v0, v2, v2 clamp",
        "v_dot2_f32_f16 v0, -v2, v2, v3",
    ],
)
def test_what_has_no_meaning_is_refused(code: str) -> None:
    with pytest.raises(EmulationError, match="unknown instruction"):
        executed(code, {})


@pytest.mark.parametrize(("added", "total"), [(-10, -14), (-(2**31) + 2, -(2**31)), (7, 3)])
def test_a_sum_of_signed_integers_saturates_at_both_ends(added: int, total: int) -> None:
    values = {
        "v1": np.full(64, 0xFFFFFFFF, np.uint32),  # four times -1
        "v2": np.full(64, 0x01010101, np.uint32),
        "v3": np.full(64, added, np.int32),
    }
    waves = executed("v_dot4_i32_i8 v0, v1, v2, v3 clamp", values)
    assert (vector(waves, 0, np.int32) == total).all()


@pytest.mark.parametrize("name", sorted(n for n, (_, adds) in DOT_PRODUCTS.items() if adds))
def test_the_first_source_may_be_that_of_another_lane(name: str) -> None:
    """DPP, whose lanes that are masked keep what they have."""
    kind, _ = DOT_PRODUCTS[name]
    generator = np.random.default_rng(5)
    floating = "f" in kind
    a, b = (
        (_halves(generator, kind) if floating else generator.integers(0, 2**32, 64, np.uint32))
        for _ in range(2)
    )
    c = np.arange(64, dtype=np.float32).view(np.uint32) if floating else np.arange(64, dtype="u4")
    swapped = a[np.arange(64) ^ 1]
    plain = vector(executed(f"{name}_e32 v0, v2, v3", {"v0": c, "v2": swapped, "v3": b}), 0)
    moved = f"{name}_dpp v0, v2, v3 quad_perm:[1,0,3,2] row_mask:0x5 bank_mask:0xf"
    found = vector(executed(moved, {"v0": c, "v2": a, "v3": b}), 0)
    written = np.arange(64) // 16 % 2 == 0
    np.testing.assert_array_equal(found, np.where(written, plain, c))
    assert (plain[written] != c[written]).mean() > 0.9


def _halves(generator: np.random.Generator, kind: str) -> np.ndarray:
    codes = [rounded(float(x), kind) for x in generator.integers(1, 99, 128)]
    return np.array(codes, np.uint16).view(np.uint32)
