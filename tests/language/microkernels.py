"""Correct micro-kernels, for tests to spoil."""

from __future__ import annotations

from pathlib import Path

from mfmadsl.language import load_entries
from mfmadsl.model import Microkernel

FMA = """\
use vectors

/// Two rows of two vectors.
microkernel avx512_f32_2x32 {
  shape     m=2 n=32 k=1
  a         float32[i, k]  at  rows(i, k)  broadcast
  b         float32[k, j]  at  columns(k, j, width=16, pack=1)
  c         float32[i, j]  at  sums(i, j, width=16)
  call      "llvm.fma.v16f32"
  features  avx512f
}
"""

DOT = """\
use vectors

layout deep_rows(x, k) {
  register = x + X * (k / 4)
  element  = k % 4
}

microkernel vnni_u8i8_2x32x8 {
  shape     m=2 n=32 k=8
  a         uint8[i, k]   at  deep_rows(i, k)  broadcast
  b         int8[k, j]    at  columns(k, j, width=16, pack=4)
  c         int32[i, j]   at  sums(i, j, width=16)
  call      "llvm.x86.avx512.vpdpbusd.512"
  features  avx512vnni
}
"""

TILES = """\
use vectors

microkernel amx_i8_16x32x128 {
  shape     m=16 n=32 k=128
  a         int8[i, k]   at  tiles(i, k, width=64)
  b         int8[k, j]   at  packed_tiles(k, j, width=16, pack=4)
  c         int32[i, j]  at  tiles(i, j, width=16)
  call      "llvm.x86.tdpbssd"
  features  amx_int8
}
"""

SUM = """\
use vectors

microkernel sse2_f64_3x4 {
  shape       m=3 n=4 k=1
  a           float64[i, k]  at  rows(i, k)  broadcast
  b           float64[k, j]  at  columns(k, j, width=2, pack=1)
  c           float64[i, j]  at  sums(i, j, width=2)
  expression  c + a * b
  features    sse2
}
"""


def replaced(text: str, old: str, new: str) -> str:
    """A text with one piece replaced; the piece must be there exactly once."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


def described(folder: Path, text: str) -> Microkernel:
    """The one micro-kernel of a text, which is written into the folder."""
    path = folder / "spec.mfma"
    path.write_text(text)
    (found,) = load_entries(path).microkernels
    return found
