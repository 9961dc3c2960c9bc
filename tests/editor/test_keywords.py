"""The words of the language are those of its grammar, and say what its page says."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from mfmadsl.editor.element_type import type_summary
from mfmadsl.editor.keywords import FIELDS, ITEMS, RULES, SHAPES
from mfmadsl.model import ELEMENT_TYPES
from mfmadsl.resources import resource_folder
from tests.test_readme import ROOT

PAGE = (ROOT / "docs/language.md").read_text()
GRAMMAR = (resource_folder("grammars") / "mfma.lark").read_text()
HEADINGS = {
    "intrinsic": "## Instructions", "microkernel": "## Micro-kernels of a CPU", "read": "### Reads",
    "fragment": "### Fragments",
}  # fmt: skip


def rows(heading: str) -> dict[str, str]:
    """The first table with fields under a heading of the page."""
    table = PAGE.split(f"\n{heading}\n")[1].split("| field | says |\n")[1].split("\n\n")[0]
    found: dict[str, str] = {}
    for line in table.splitlines()[1:]:
        words, says = line.strip("| ").split(" | ")
        found |= {word.strip("`"): says for word in words.split(", ")}
    return found


@pytest.mark.parametrize("kind", HEADINGS)
def test_a_field_says_what_the_page_says(kind: str) -> None:
    assert dict(FIELDS[kind]) == rows(HEADINGS[kind])


def test_every_word_of_the_grammar_is_known() -> None:
    words = set(re.findall(r'"([a-z_]+)"', re.sub(r"//.*", "", GRAMMAR)))
    known = {*ITEMS, *(field for fields in FIELDS.values() for field in fields)}
    assert words - known == {"at", "in", "unknown", "broadcast"}
    assert known <= words


def test_every_kind_of_entry_has_its_fields_and_its_shape() -> None:
    entries = set(ITEMS) - {"use", "layout"}
    assert set(FIELDS) == set(SHAPES) == entries
    assert list(RULES) == ["lane", "register", "element"]


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_a_type_has_the_bits_that_numpy_says(name: str) -> None:
    told = type_summary(name)
    assert told is not None
    assert told.startswith(f"{ELEMENT_TYPES[name].bits} bits, ")
    if "int" in name or name in ("xfloat32", "float8_e8m0fnu"):
        return  # integers, what NumPy has not, and what has no fraction at all
    found = ml_dtypes.finfo(name if hasattr(np, name) else getattr(ml_dtypes, name))
    assert f"{found.nexp} bits of exponent, {found.nmant} of fraction" in told.replace(
        "upper half of a float32: a sign, ", ""
    )
    assert ("no infinity" in told) == (not np.isinf(np.array(np.inf).astype(found.dtype)))


def test_what_is_no_type_is_none() -> None:
    assert type_summary("float17") is None
