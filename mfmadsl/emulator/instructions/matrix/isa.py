"""Which matrix instructions the chips have: the tables of CDNA1's to CDNA4's ISA manuals, in the
sections on matrix arithmetic instructions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mfmadsl.emulator.instructions.matrix.layout import Shape
from mfmadsl.model import assumed

Tiles = tuple[Shape, ...]
_Kinds = dict[tuple[str, str], Tiles]


def _tiles(text: str) -> Tiles:
    """Tiles written as M x N x K, or as M x N x K x blocks."""
    return tuple(
        Shape(*(int(x) for x in tile.split("x"))) if tile.count("x") == 3 else _one_block(tile)
        for tile in text.split()
    )


def _one_block(tile: str) -> Shape:
    m, n, k = (int(x) for x in tile.split("x"))
    return Shape(m, n, k, 1)


_FP8 = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")
_F32 = _tiles("4x4x1x16 16x16x1x4 32x32x1x2 16x16x4 32x32x2")
_F16 = _tiles("4x4x4x16 16x16x4x4 32x32x4x2 16x16x16 32x32x8")
_OLD_BF16 = _tiles("4x4x2x16 16x16x2x4 32x32x2x2 16x16x8 32x32x4")
_F64 = _tiles("4x4x4x4 16x16x4")
_I8 = _tiles("4x4x4x16 16x16x4x4 32x32x4x2 16x16x32 32x32x16")

_CDNA1: _Kinds = {
    ("f32", "f32"): _F32,
    ("f32", "f16"): _F16,
    ("f32", "bf16"): _OLD_BF16,
    ("i32", "i8"): _F16,
}
_CDNA2: _Kinds = {**_CDNA1, ("f32", "bf16_1k"): _F16, ("f64", "f64"): _F64}
_CDNA3: _Kinds = {
    ("f32", "f32"): _F32,
    ("f32", "f16"): _F16,
    ("f32", "bf16"): _F16,
    ("f32", "xf32"): _tiles("16x16x8 32x32x4"),
    ("f64", "f64"): _F64,
    ("i32", "i8"): _I8,
    **{("f32", kinds): _tiles("16x16x32 32x32x16") for kinds in _FP8},
}
_CDNA3["f32", "bf16_1k"] = _CDNA3["f32", "bf16"]  # LLVM takes CDNA2's spelling as well
_CDNA4: _Kinds = {
    **{kinds: tiles for kinds, tiles in _CDNA3.items() if kinds != ("f32", "xf32")},
    ("f32", "f16"): _F16 + _tiles("16x16x32 32x32x16"),
    ("f32", "bf16"): _F16 + _tiles("16x16x32 32x32x16"),
    ("i32", "i8"): _I8 + _tiles("16x16x64 32x32x32"),
    ("f32", "f8f6f4"): _tiles("16x16x128 32x32x64"),
}
_SPARSE_CDNA3: _Kinds = {
    ("f32", "f16"): _tiles("16x16x32 32x32x16"),
    ("f32", "bf16"): _tiles("16x16x32 32x32x16"),
    ("i32", "i8"): _tiles("16x16x64 32x32x32"),
    **{("f32", kinds): _tiles("16x16x64 32x32x32") for kinds in _FP8},
}
_SPARSE_CDNA4: _Kinds = {  # each of CDNA3's, and one of twice its K
    kinds: tiles + tuple(Shape(tile.m, tile.n, 2 * tile.k, 1) for tile in tiles)
    for kinds, tiles in _SPARSE_CDNA3.items()
}
_BY_FAMILY: dict[str, dict[str, _Kinds]] = {
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
def blocks_of(arch: str, form: str, out: str, kinds: str) -> Mapping[tuple[int, int, int], int]:
    """How many blocks each M x N x K of a chip's instructions of this form and these types has."""
    tiles = _BY_FAMILY.get(assumed(arch).family, {}).get(form, {}).get((out, kinds), ())
    return {(tile.m, tile.n, tile.k): tile.blocks for tile in tiles}
