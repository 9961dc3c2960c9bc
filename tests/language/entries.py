"""A correct `.mfma` text, for tests to spoil."""

from __future__ import annotations

from mfmadsl.language import LanguageError, load_source
from mfmadsl.language.diagnostic import Diagnostic, Source

HALF = """\
use layouts

/// Half inputs.
intrinsic mfma_f32_16x16x16_f16 {
  shape   m=16 n=16 k=16
  a       float16[i, k]  at  operand(i, k, pack=4)
  b       float16[k, j]  at  operand(j, k, pack=4)
  c       float32[i, j]  at  accumulator(i, j)
  call    "llvm.amdgcn.mfma.f32.16x16x16f16"
  cycles  gfx90a=32 gfx942=16
  alias   v_mfma_f32_16x16x16f16
}
"""


def spoiled(old: str, new: str) -> str:
    """HALF with one piece replaced; the piece must be there exactly once."""
    assert HALF.count(old) == 1, old
    return HALF.replace(old, new)


def diagnostics(text: str) -> list[Diagnostic]:
    """What is wrong with a text: nothing is an error of the test."""
    try:
        load_source(Source("spec.mfma", text))
    except LanguageError as error:
        return list(error.diagnostics)
    raise AssertionError("the text was accepted")


def only(text: str) -> Diagnostic:
    """The one mistake of a text."""
    (found,) = diagnostics(text)
    return found
