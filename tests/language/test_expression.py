"""Integer expressions against Python's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language import LanguageError
from mfmadsl.language.diagnostic import Source
from mfmadsl.language.expression import compile_expression, names_in, tabulate
from mfmadsl.language.parser import parse
from mfmadsl.language.syntax import Expression, LayoutItem


def expression(text: str) -> Expression:
    (item,), found = parse(Source("x", f"layout l(i, j) {{ lane = {text} }}"))
    assert found == []
    assert isinstance(item, LayoutItem)
    return item.rules[0].expression


texts = st.recursive(
    st.sampled_from(["i", "j", "0", "1", "3", "16"]),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%"), inner),
    max_leaves=8,
)


def by_python(text: str, i: int, j: int) -> int | None:
    """None where the language knows no value: a division by zero, a negative intermediate."""
    if not text.startswith("("):
        return {"i": i, "j": j}.get(text) if text.isalpha() else int(text)
    depth, cut = 0, 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 1 and character in "+-*/%":
            cut = index
    left, right = by_python(text[1 : cut - 1], i, j), by_python(text[cut + 2 : -1], i, j)
    if left is None or right is None or (text[cut] in "/%" and right == 0):
        return None
    value = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "/": left // right if right else 0,
        "%": left % right if right else 0,
    }[text[cut]]
    return value if value >= 0 else None


@given(texts, st.integers(0, 40), st.integers(0, 40))
def test_a_value_is_pythons_and_what_has_none_is_an_error(text: str, i: int, j: int) -> None:
    expected = by_python(text, i, j)
    try:
        assert compile_expression(expression(text))({"i": i, "j": j}) == expected
    except LanguageError:
        assert expected is None


@given(texts)
def test_a_table_holds_the_value_at_every_point(text: str) -> None:
    points = [(i, j) for i in range(3) for j in range(5)]
    expected = [by_python(text, i, j) for i, j in points]
    try:
        assert tabulate([expression(text)], {}, [("i", 3), ("j", 5)]) == [(v,) for v in expected]
    except LanguageError:
        assert None in expected


def test_operators_bind_as_in_arithmetic() -> None:
    assert compile_expression(expression("1 + 2 * 3 - 8 / 2 % 3"))({}) == 6
    assert compile_expression(expression("9 - 3 - 2"))({}) == 4


def test_names_are_found_left_to_right() -> None:
    assert [name.text for name in names_in(expression("j + i * (j / 2)"))] == ["j", "i", "j"]
