"""Layouts on operands: every element gets a place of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language import LanguageError, load_source
from mfmadsl.language.diagnostic import Source
from tests.language.entries import HALF, only, spoiled

PLACE_A = "at  operand(i, k, pack=4)"


def with_layout(rules: str) -> str:
    """HALF with A placed by a layout of its own."""
    return f"layout own(i, k) {{ {rules} }}\n" + spoiled(PLACE_A, "at  own(i, k)")


def test_two_elements_in_one_place_are_both_named() -> None:
    found = only(with_layout("lane = i + 16 * (k / 4)  register = k / 2 % 4"))
    assert found.code == "collision"
    assert found.message == "lane 0 holds both A[0,0] and A[0,1] in register 0"
    assert found.span.text == "own(i, k)"


def test_a_lane_past_the_wave() -> None:
    found = only(spoiled(PLACE_A, "at  operand(i, k, pack=2)"))
    assert found.code == "lane"
    assert found.message == "A[0,8] falls on lane 64, but a wave has lanes 0 to 63"


def test_a_register_past_those_that_the_operand_fills() -> None:
    found = only(with_layout("lane = i + 16 * (k % 4)  register = 1 + k / 4"))
    assert found.code == "register"
    assert found.message == (
        "A[0,12] falls on register 4, but 64 lanes hold the operand in registers 0 to 3"
    )


def test_a_tile_that_does_not_fill_the_lanes_evenly() -> None:
    text = HALF.replace("16x16x16", "16x16x3").replace("k=16", "k=3")
    with pytest.raises(LanguageError) as error:
        load_source(Source("x", text))
    assert error.value.diagnostics[0].message == "16x3 elements of A do not fill 64 lanes evenly"


def test_more_elements_than_a_lane_has_registers_are_refused_before_they_are_counted() -> None:
    text = HALF.replace("m=16 n=16 k=16", "m=128 n=128 k=128 blocks=128")
    with pytest.raises(LanguageError, match="a lane would hold 32768 elements of A, more than 512"):
        load_source(Source("x", text))


@pytest.mark.parametrize(
    ("use", "message", "hint"),
    [
        ("operands(i, k, pack=4)", "there is no layout `operands`", "did you mean `operand`?"),
        ("zzz(i, k)", "there is no layout `zzz`", "there are: accumulator, "),
        ("operand(i, k, pak=4)", "operand(x, k, pack) has no parameter `pak`", "`pack`?"),
        ("operand(i, j, pack=4)", "`j` is not an index of `a`", "here `i` and `k`, or a number"),
        ("operand(i, k, 4, 4)", "operand(x, k, pack) takes no more", ""),
        ("operand(i, k)", "operand(x, k, pack) also needs `pack`", ""),
        ("operand(i, k, 4, k=4)", "`k` is given twice", ""),
        ("operand(i, 3, pack=4)", "the layout does not see `k`", "pass it on"),
        ("operand(i, k, pack=0)", "in layout `operand`, `k / pack` divides by zero", ""),
    ],
)
def test_a_use_that_does_not_fit_the_layout(use: str, message: str, hint: str) -> None:
    found = only(spoiled(PLACE_A, f"at  {use}"))
    assert message in found.message
    assert hint in found.hint
    assert found.span.source.position(found.span.start)[0] == 6


def test_nothing_is_ever_negative() -> None:
    found = only(with_layout("lane = i - k  register = k"))
    assert found.message == ("in layout `own`, `i - k` is -1, and nothing here may be negative")


def test_a_layout_that_is_missing_because_the_use_is_broken_is_no_second_mistake() -> None:
    found = only(spoiled("use layouts", "use layuots"))
    assert found.code == "use"


_TERMS = ["i", "k", "i / 4", "k / 4", "i % 4", "k % 4", "k / 2 % 2", "i * 4", "k * 16", "i * 16"]


@given(st.lists(st.sampled_from(_TERMS), min_size=1, max_size=3), st.sampled_from(_TERMS))
def test_what_is_accepted_is_one_to_one_and_onto(lane: list[str], register: str) -> None:
    text = with_layout(f"lane = {' + '.join(lane)}  register = {register}")
    try:
        (intrinsic,) = load_source(Source("x", text))
    except LanguageError:
        return
    assert sorted(intrinsic.a.layout.slots) == [(a, b) for a in range(64) for b in range(4)]
