"""The text of each entry of a file, as it is written."""

from __future__ import annotations

import re
from pathlib import Path

from mfmadsl.language import library_files
from mfmadsl.language.excerpt import entry_texts
from tests.language.entries import HALF

TYPES = """{{ shape m=16 n=16 k=16
  a float16{0}[i, k] at operand(i, k, pack=4)
  b float16{0}[k, j] at operand(j, k, pack=4)
  c float32[i, j] at accumulator(i, j)
  call "llvm.amdgcn.mfma.f32.16x16x16.what" unknown cycles gfx942=16 }}
"""


def test_every_entry_of_the_library_has_its_text() -> None:
    for path in library_files():
        for name, text in entry_texts(path).items():
            line = next(line for line in text.splitlines() if not line.startswith("///"))
            names = re.search(r'^  names +"(.*)"$', text, re.MULTILINE)
            own = re.sub(r"\\{\w\\}", r"\\w+", re.escape(names[1])) if names else line.split()[1]
            assert re.match(own, name)
            assert text.endswith("}\n")


def test_the_comments_before_an_entry_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.mfma"
    path.write_text(HALF + "// nobody's\n\n")
    (text,) = entry_texts(path).values()
    assert text.startswith("///")
    assert "nobody" not in text


def test_an_entry_of_several_types_is_the_text_of_each(tmp_path: Path) -> None:
    path = tmp_path / "two.mfma"
    several = "intrinsic mfma_f32_16x16x16 " + TYPES.format(" bfloat16")
    single = "intrinsic mfma_f32_16x16x16_f16_bf " + TYPES.format("")
    path.write_text(f"use layouts\n{several}{single}")
    found = entry_texts(path)
    assert found["mfma_f32_16x16x16_f16_bf16"] == several
    assert found["mfma_f32_16x16x16_f16_bf"] == single
