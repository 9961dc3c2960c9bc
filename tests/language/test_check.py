"""What is known of a text that is wrong in places, and of one that an editor has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.language import LanguageError, Source, check_source, load_entries, read_source
from tests.language.entries import HALF

WRONG = HALF.replace("mfma_f32_16x16x16_f16 {", "mfma_f32_16x16x16_bf16 {").replace(
    "use layouts\n", ""
)


def test_what_is_right_is_known_beside_what_is_wrong() -> None:
    checked = check_source(Source("x.mfma", HALF + WRONG.replace("alias   v_mfma", "alias   v_x")))
    assert {d.code for d in checked.diagnostics} == {"name"}
    assert [
        (item.name.text, [model.name for model in models]) for item, models in checked.described
    ] == [("mfma_f32_16x16x16_f16", ["mfma_f32_16x16x16_f16"])]
    assert len(checked.items) == 3
    assert "operand" in checked.layouts
    with pytest.raises(LanguageError):
        checked.entries()


def test_a_reader_has_its_own_texts_of_files_that_are_used(tmp_path: Path) -> None:
    own = tmp_path / "own.mfma"
    own.write_text("layout lie(x, k) { lane = x register = k }\n")
    path = tmp_path / "spec.mfma"
    path.write_text("use own\n")

    def read(asked: Path) -> Source:
        text = "layout lie(x, k) { lane = y register = k }\n" if asked == own else None
        return read_source(asked) if text is None else Source(str(asked), text)

    assert load_entries(path).intrinsics == []
    checked = check_source(read_source(path), path, read=read)
    assert [d.code for d in checked.diagnostics] == ["unknown-name"]
    assert checked.files == {own}
    (used,) = checked.uses
    assert (used.name.text, used.path, used.diagnostics) == ("own", own, checked.diagnostics)


def test_a_text_without_a_file_uses_the_library() -> None:
    checked = check_source(Source("untitled", HALF))
    assert checked.diagnostics == ()
    assert checked.entries().intrinsics[0].name == "mfma_f32_16x16x16_f16"


def test_what_cannot_be_used_says_which_file_that_is(tmp_path: Path) -> None:
    path = tmp_path / "circle.mfma"
    path.write_text("use circle\n")
    checked = check_source(read_source(path), path)
    assert [d.code for d in checked.diagnostics] == ["use"]
    assert checked.uses[0].path == path
