"""The canonical form: columns, comments kept, and nothing changed but spaces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language import LanguageError, Source, library_files
from mfmadsl.language.formatter import format_source
from mfmadsl.language.parser import parse
from tests.language.entries import HALF


def formatted(text: str) -> str:
    return format_source(Source("x", text))


def shape(node: Any) -> Any:
    """A syntax tree without its positions."""
    if isinstance(node, tuple):
        fields = getattr(node, "_fields", None)
        if fields is None:
            return tuple(shape(child) for child in node)
        return (type(node).__name__, *(shape(getattr(node, f)) for f in fields if f != "span"))
    return node


def meaning(text: str) -> Any:
    items, found = parse(Source("x", text))
    assert found == []
    return [shape(item) for item in items]


@pytest.mark.parametrize("path", library_files(), ids=lambda p: p.name)
def test_the_library_is_in_canonical_form(path: Any) -> None:
    assert formatted(path.read_text()) == path.read_text()


def test_fields_stand_in_columns_and_operators_apart() -> None:
    messy = """use   layouts
layout l( i,j,p ){lane=i+4*(j/p) register=j%p}
intrinsic x{shape m=16   n=16 k=16
a float16 [i,k/2] at operand( i,k,pack = 4 ) b float16[k,j] at l(j, k,4)
call "llvm.amdgcn.x" cycles gfx942=16
  alias   v_x   v_y}"""
    assert (
        formatted(messy)
        == """\
use layouts

layout l(i, j, p) {
  lane     = i + 4 * (j / p)
  register = j % p
}

intrinsic x {
  shape   m=16 n=16 k=16
  a       float16[i, k / 2]  at  operand(i, k, pack=4)
  b       float16[k, j]      at  l(j, k, 4)
  call    "llvm.amdgcn.x"
  cycles  gfx942=16
  alias   v_x v_y
}
"""
    )


def test_comments_stay_where_they_were() -> None:
    text = """\
// about the file

// about the use
use layouts  // beside it
use other

// apart

/// Documented.
// and explained
intrinsic x {
  // above
  shape  m=16 n=16 k=16  // beside
  alias  v_x
  // last
}

// the end
"""
    assert formatted(text) == text


def test_an_empty_file_stays_empty() -> None:
    assert formatted("") == formatted("\n\n") == ""


def test_a_text_that_is_not_well_formed_is_not_touched() -> None:
    with pytest.raises(LanguageError, match="never closed"):
        formatted("intrinsic x {")


PIECES = ["use layouts", "// c", "/// d", *HALF.split("\n")[3:-1],
          "layout l(i, j) { lane = i register = j % (2 + i) }"]  # fmt: skip
texts = st.lists(
    st.tuples(st.sampled_from([HALF, "use a", "layout l(i, j) { lane = (i) register = j-1 }"]),
              st.sampled_from(["\n", " // c\n", "\n// c\n", "\n\n// c\n\n", "\n/// d\n", "  "])),
    min_size=1, max_size=4,
).map(lambda pairs: "".join(a + b for a, b in pairs))  # fmt: skip


@given(texts, st.data())
def test_formatting_keeps_the_meaning_and_is_idempotent(text: str, data: st.DataObject) -> None:
    spaces = data.draw(st.lists(st.sampled_from([" ", "  ", "\n", "\t"]), min_size=8, max_size=8))
    pieces = text.split(" ")
    text = "".join(p + spaces[i % 8] for i, p in enumerate(pieces[:-1])) + pieces[-1]
    if parse(Source("x", text))[1]:
        return
    once = formatted(text)
    assert meaning(once) == meaning(text)
    assert formatted(once) == once
    assert once.count("//") == text.count("//")


def test_what_is_long_is_formatted_in_a_time_that_grows_with_it() -> None:
    """Were it by the square, a file of the largest size would take an hour."""
    assert formatted("use x " * 20_000) == "use x\n" * 20_000
    comments = "// c\n" * 20_000
    assert formatted(f"layout l(x) {{ lane = x\n{comments}register = 0 }}").count("// c") == 20_000
