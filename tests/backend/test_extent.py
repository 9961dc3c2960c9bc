"""Extents that are known at the launch: what they print is what they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.backend.extent import OPERATORS, Extent, Formula, value_of

SYMBOLS = {"m": 7, "n": 1000}
SHIFTS, QUOTIENTS = ("lshift", "rshift"), ("floordiv", "floormod")


def formulas(parts: st.SearchStrategy[Extent]) -> st.SearchStrategy[Extent]:
    """Of two extents; shifts and quotients are by small positive numbers, as those of grids are."""
    small = st.integers(1, 9)
    others = sorted(OPERATORS - {*SHIFTS, *QUOTIENTS})
    return st.one_of(
        st.builds(Formula, st.sampled_from(others), parts, parts),
        st.builds(Formula, st.sampled_from(QUOTIENTS), parts, small),
        st.builds(Formula, st.sampled_from(SHIFTS), parts, small),
    )


@given(st.recursive(st.one_of(st.integers(0, 99), st.sampled_from(["m", "n"])), formulas))
def test_a_formula_prints_as_python(extent: Extent) -> None:
    assert eval(str(extent), {}, SYMBOLS) == value_of(extent, SYMBOLS)


def test_parentheses_stand_where_python_needs_them() -> None:
    shifted = Formula("lshift", 2, Formula("add", "n", 7))
    assert str(shifted) == "2 << (n + 7)"
    assert str(Formula("min", shifted, 9)) == "min(2 << (n + 7), 9)"
    assert str(Formula("add", Formula("lt", 256, "n"), 1)) == "(int(256 < n)) + 1"
