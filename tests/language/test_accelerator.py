"""Accelerators: tiles in scopes of their own, and a C function."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.language import LanguageError, Source, load_entries
from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.formatter import format_source

TEXT = """\
/// Multiplies tiles.
accelerator tmm16 {
  shape  m=16 n=16 k=8
  a      float32[i, k]  in  "global.A_reg"
  b      float32[j, k]  in  "global.B_reg"
  c      float32[i, j]  in  "global.accumulator"
  calls  "tmm16_kernel"
}
"""


def mistakes(folder: Path, old: str, new: str) -> list[Diagnostic]:
    assert TEXT.count(old) == 1
    (folder / "x.mfma").write_text(TEXT.replace(old, new))
    with pytest.raises(LanguageError) as error:
        load_entries(folder / "x.mfma")
    return list(error.value.diagnostics)


def test_a_correct_entry_becomes_the_model(tmp_path: Path) -> None:
    (tmp_path / "x.mfma").write_text(TEXT)
    intrinsics, (unit,), *others = load_entries(tmp_path / "x.mfma")
    assert not any((intrinsics, *others))
    assert (unit.name, unit.doc, unit.function) == ("tmm16", "Multiplies tiles.", "tmm16_kernel")
    assert [unit.extent(index) for index in "ijk"] == [16, 16, 8]
    assert (unit.b.indices, unit.b.scope) == (("j", "k"), "global.B_reg")
    assert unit.c.type.name == "float32"


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ('"global.A_reg"', '"shared"', "scope", '"shared" is no memory scope'),
        ('"tmm16_kernel"', '"a b"', "call", '"a b" is no name of a C function'),
        ("float32[j, k]", "float32[i, k]", "indices", "`b` is indexed [k, j] or [j, k]"),
        ("float32[i, j]", "float32[j, i]", "indices", "`c` is indexed [i, j]"),
        ("float32[i, k]", "float33[i, k]", "type", "`float33` is no element type"),
        ("float32[i, k]", "float4_e2m1fn[i, k]", "type", "holds whole bytes"),
        ("float32[i, j]", "int32[i, j]", "type", "`a` holds floats, but `c` is int32"),
        ("k=8", "k=8 blocks=2", "shape", "it has no blocks"),
        ('  calls  "tmm16_kernel"\n', "", "field", "accelerator `tmm16` has no `calls`"),
        ("accelerator tmm16", "accelerator class", "name", "a word of Python"),
    ],
)
def test_a_rule_that_is_broken(tmp_path: Path, old: str, new: str, code: str, message: str) -> None:
    (found,) = mistakes(tmp_path, old, new)
    assert found.code == code
    assert message in found.message


def test_it_has_a_canonical_form() -> None:
    assert format_source(Source("x", TEXT)) == TEXT
    messy = TEXT.replace("  in  ", " in ").replace("shape  ", "shape ")
    assert format_source(Source("x", messy)) == TEXT
