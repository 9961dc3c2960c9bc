"""Which matrix instructions the chips have, and for how long: the tables of CDNA1's to CDNA4's ISA
manuals, in the sections on matrix arithmetic instructions and on their passes (chapter 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from mfmadsl.emulator.instructions.matrix.layout import BlockShape
from mfmadsl.model import assumed


@dataclass(frozen=True)
class MatrixTile:
    """One size of an instruction, and how many passes of four cycles the matrix core needs.

    Where modifiers choose the types, an eight-bit A or B doubles the passes.
    """

    shape: BlockShape
    passes: int


Tiles = tuple[MatrixTile, ...]
_Kinds = dict[tuple[str, str], Tiles]


def _tiles(text: str) -> Tiles:
    """Tiles written as MxNxK:passes, or as MxNxKxblocks:passes."""
    return tuple(_tile(*tile.split(":")) for tile in text.split())


def _tile(extents: str, passes: str) -> MatrixTile:
    m, n, k, *blocks = (int(x) for x in extents.split("x"))
    return MatrixTile(BlockShape(m, n, k, *blocks or (1,)), int(passes))


_FP8 = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")
_F32 = _tiles("4x4x1x16:2 16x16x1x4:8 32x32x1x2:16 16x16x4:8 32x32x2:16")
_OLD_F16 = _tiles("4x4x4x16:2 16x16x4x4:8 32x32x4x2:16 16x16x16:8 32x32x8:16")
_F16 = _tiles("4x4x4x16:2 16x16x4x4:8 32x32x4x2:16 16x16x16:4 32x32x8:8")
_OLD_BF16 = _tiles("4x4x2x16:2 16x16x2x4:8 32x32x2x2:16 16x16x8:8 32x32x4:16")
_F64 = _tiles("4x4x4x4:4 16x16x4:8")
_I8 = _tiles("4x4x4x16:2 16x16x4x4:8 32x32x4x2:16 16x16x32:4 32x32x16:8")

_CDNA1: _Kinds = {
    ("f32", "f32"): _F32,
    ("f32", "f16"): _OLD_F16,
    ("f32", "bf16"): _OLD_BF16,
    ("i32", "i8"): _OLD_F16,
}
_CDNA2: _Kinds = {**_CDNA1, ("f32", "bf16_1k"): _OLD_F16, ("f64", "f64"): _F64}
_CDNA3: _Kinds = {
    ("f32", "f32"): _F32,
    ("f32", "f16"): _F16,
    ("f32", "bf16"): _F16,
    ("f32", "xf32"): _tiles("16x16x8:4 32x32x4:8"),
    ("f64", "f64"): _F64,
    ("i32", "i8"): _I8,
    **{("f32", kinds): _tiles("16x16x32:4 32x32x16:8") for kinds in _FP8},
}
_CDNA3["f32", "bf16_1k"] = _CDNA3["f32", "bf16"]  # LLVM takes CDNA2's spelling as well
_CDNA4: _Kinds = {
    **{kinds: tiles for kinds, tiles in _CDNA3.items() if kinds != ("f32", "xf32")},
    ("f32", "f16"): _F16 + _tiles("16x16x32:4 32x32x16:8"),
    ("f32", "bf16"): _F16 + _tiles("16x16x32:4 32x32x16:8"),
    ("i32", "i8"): _I8 + _tiles("16x16x64:4 32x32x32:8"),
    ("f64", "f64"): _tiles("4x4x4x4:4 16x16x4:16"),
    ("f32", "f8f6f4"): _tiles("16x16x128:4 32x32x64:8"),
}
_SPARSE_CDNA3: _Kinds = {
    ("f32", "f16"): _tiles("16x16x32:4 32x32x16:8"),
    ("f32", "bf16"): _tiles("16x16x32:4 32x32x16:8"),
    ("i32", "i8"): _tiles("16x16x64:4 32x32x32:8"),
    **{("f32", kinds): _tiles("16x16x64:4 32x32x32:8") for kinds in _FP8},
}
_SPARSE_CDNA4: _Kinds = {  # each of CDNA3's, and one of twice its K
    kinds: tiles + tuple(replace(t, shape=replace(t.shape, k=2 * t.shape.k)) for t in tiles)
    for kinds, tiles in _SPARSE_CDNA3.items()
}
BY_FAMILY: dict[str, dict[str, _Kinds]] = {
    "CDNA1": {"mfma": _CDNA1},
    "CDNA2": {"mfma": _CDNA2},
    "CDNA3": {"mfma": _CDNA3, "smfmac": _SPARSE_CDNA3},
    "CDNA4": {
        "mfma": _CDNA4,
        "smfmac": _SPARSE_CDNA4,
        "mfma_scale": {("f32", "f8f6f4"): _CDNA4["f32", "f8f6f4"]},
    },
}


@cache
def tiles_of(
    arch: str, form: str, out: str, kinds: str
) -> Mapping[tuple[int, int, int], MatrixTile]:
    """The tiles of a chip's instructions of this form and these types, by their M, N and K."""
    tiles = BY_FAMILY.get(assumed(arch).family, {}).get(form, {}).get((out, kinds), ())
    return {(tile.shape.m, tile.shape.n, tile.shape.k): tile for tile in tiles}
