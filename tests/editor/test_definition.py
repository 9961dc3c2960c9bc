"""Where words are defined, and the outline of a text."""

from __future__ import annotations

from pathlib import Path

from mfmadsl.editor.definition import definition
from mfmadsl.editor.symbols import symbols
from mfmadsl.language import Span, check_source, read_source
from mfmadsl.resources import resource_folder
from tests.editor.marked import before, marked
from tests.language.entries import HALF

OWN = "layout own(x, k, pack) { lane = x + X * k register = k % pack }\n"


def defined(text: str, piece: str, within: int = 0) -> Span | None:
    return definition(*marked(before(text, piece, within)))


def test_a_layout_is_defined_in_its_own_file() -> None:
    text = OWN + HALF.replace("operand(i, k, pack=4)", "own(i, k, pack=4)")
    found = defined(text, "own(i", 2)
    assert found is not None
    assert (found.source.name, found.start, found.text) == ("spec.mfma", 7, "own")


def test_a_layout_is_defined_in_the_library() -> None:
    found = defined(HALF, "accumulator")
    assert found is not None
    assert Path(found.source.name) == (resource_folder("intrinsics") / "layouts.mfma").resolve()
    assert found.source.text[found.start - 7 : found.end] == "layout accumulator"


def test_a_layout_is_defined_in_a_file_that_is_used(tmp_path: Path) -> None:
    (tmp_path / "own.mfma").write_text(OWN)
    path = tmp_path / "spec.mfma"
    path.write_text("use own\nintrinsic x { a int8[i, k] at own(i, k, 4) }")
    source = read_source(path)
    found = definition(check_source(source, path), source.text.index("own(i"))
    assert found is not None
    assert found.source.name == str((tmp_path / "own.mfma").resolve())
    used = definition(check_source(source, path), 4)
    assert used is not None
    assert (used.source.name, used.start) == (found.source.name, 0)


def test_a_rule_names_a_parameter_or_its_extent() -> None:
    for piece in ("x + X", "X * k"):
        found = defined(OWN, piece)
        assert found is not None
        assert OWN[found.start : found.end] == "x"
        assert found.start == OWN.index("x, k")


def test_an_argument_by_name_is_the_layouts_parameter() -> None:
    found = defined(HALF, "j, k, pack=4", 7)
    assert found is not None
    assert found.source.text[: found.start].endswith("layout operand(x, k, ")


def test_what_has_no_definition_has_none() -> None:
    for piece in ("shape", "16 n=16", "float32", "Half", "gfx942"):
        assert defined(HALF, piece) is None
    assert defined("use nowhere", "nowhere") is None
    assert defined("intrinsic x { a int8[i, k] at none(i) }", "none") is None


def test_the_outline_has_every_item_that_has_a_name() -> None:
    text = f"use layouts\n{OWN}{HALF[12:]}\nread broken {{ shape\nfragment"
    found = symbols(text)
    assert [(s.kind, s.name) for s in found] == [
        ("layout", "own"), ("intrinsic", "mfma_f32_16x16x16_f16"), ("read", "broken"),
    ]  # fmt: skip
    assert text[found[0].start : found[0].end] == OWN.strip()
    for symbol in found:
        assert symbol.start <= symbol.name_start < symbol.name_end <= symbol.end
        assert text[symbol.name_start : symbol.name_end] == symbol.name
