"""The microcode formats: how a word says which it is, and where its fields lie.

Source: CDNA3 ISA, chapter 13 (Microcode Formats). Which bits are an instruction's own, and which of
these fields it has, is in the table of instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

Pieces = tuple[tuple[int, int], ...]
"""The (first bit, number of bits) of each piece of a field, from its lowest bits on."""


@dataclass(frozen=True)
class Encoding:
    """A format whose first word is `value` in the bits of `mask`; `opcode` are those that say
    which instruction it is."""

    name: str
    mask: int
    value: int
    opcode: int
    fields: dict[str, Pieces]


def _fields(**places: tuple[int, int]) -> dict[str, Pieces]:
    return {name: (place,) for name, place in places.items()}


_VOP: dict[str, Pieces] = {
    **_fields(src0=(0, 9), vsrc1=(9, 8), vdst=(17, 8), literal=(32, 32), dpp0=(32, 8)),
    **_fields(sdwa_sdst=(40, 7)),
    "sdwa0": ((32, 8), (55, 1)),
    "sdwa1": ((9, 8), (63, 1)),
}
"""VOP1, VOP2 and VOPC, with the second words of SDWA, DPP and of constants."""

FORMATS = (
    Encoding("sop1", 0xFF80_0000, 0xBE80_0000, 0x0000_FF00, _fields(ssrc0=(0, 8), sdst=(16, 7))),
    Encoding(
        "sopc", 0xFF80_0000, 0xBF00_0000, 0x007F_0000,
        _fields(ssrc0=(0, 8), ssrc1=(8, 8), gpr_idx_on=(8, 4)),
    ),
    Encoding(
        "sopp", 0xFF80_0000, 0xBF80_0000, 0x007F_0000,
        _fields(number=(0, 16), label=(0, 16), wait=(0, 16), gpr_idx=(0, 4)),
    ),
    Encoding(
        "sopk", 0xF000_0000, 0xB000_0000, 0x0F80_0000,
        _fields(simm16=(0, 16), hwreg=(0, 16), label=(0, 16), sdst=(16, 7), literal=(32, 32)),
    ),
    Encoding(
        "sop2", 0xC000_0000, 0x8000_0000, 0x3F80_0000,
        _fields(ssrc0=(0, 8), ssrc1=(8, 8), sdst=(16, 7)),
    ),
    Encoding("vop1", 0xFE00_0000, 0x7E00_0000, 0x0001_FE00, _VOP),
    Encoding("vopc", 0xFE00_0000, 0x7C00_0000, 0x01FE_0000, _VOP),
    Encoding("vop2", 0x8000_0000, 0x0000_0000, 0x7E00_0000, _VOP),
    Encoding(
        "smem", 0xFC00_0000, 0xC000_0000, 0x03FC_0000,
        _fields(sbase=(0, 6), sdata=(6, 7), displacement=(32, 21), soffset_low=(32, 7),
                soffset=(57, 7)),
    ),
    Encoding(
        "vop3", 0xFC00_0000, 0xD000_0000, 0x03FF_0000,
        _fields(vdst=(0, 8), sdst=(8, 7), src0=(32, 9), src1=(41, 9), src2=(50, 9),
                # The second half of a matrix instruction with scales, whose first half has those.
                matrix_vdst=(64, 8), matrix_src0=(96, 9), matrix_src1=(105, 9),
                matrix_src2=(114, 9)),
    ),
    Encoding(
        "ds", 0xFC00_0000, 0xD800_0000, 0x01FE_0000,
        _fields(addr=(32, 8), data0=(40, 8), data1=(48, 8), vdst=(56, 8)),
    ),
    Encoding(
        "flat", 0xFC00_0000, 0xDC00_0000, 0x01FC_C000,
        _fields(vaddr=(32, 8), vdata=(40, 8), saddr=(48, 7), vdst=(56, 8)),
    ),
    Encoding(
        "mtbuf", 0xFC00_0000, 0xE800_0000, 0x0007_8000,
        _fields(vaddr=(32, 8), vdata=(40, 8), srsrc=(48, 5), ssrc=(56, 8)),
    ),
    Encoding(
        "mubuf", 0xFC00_0000, 0xE000_0000, 0x01FC_0000,
        _fields(vaddr=(32, 8), vdata=(40, 8), srsrc=(48, 5), ssrc=(56, 8)),
    ),
)  # fmt: skip
"""In this order: a format may take what others leave of a larger space."""

BY_NAME = {each.name: each for each in FORMATS}
_SECOND_WORDS = (0xF9, 0xFA)  # in the place of a source: the next word is one of SDWA, or of DPP
_VECTOR = ("vop1", "vop2", "vopc")


def opcode_of(word: int) -> int | None:
    """The bits of an instruction's first word that say which it is; None of no known format."""
    for each in FORMATS:
        if word & each.mask == each.value:
            kept = each.mask | each.opcode
            if each.name in _VECTOR and word & 0x1FF in _SECOND_WORDS:
                kept |= 0x1FF
            return word & kept
    return None


def extracted(bits: int, pieces: Pieces) -> int:
    """The number in a field."""
    value, low = 0, 0
    for first, width in pieces:
        value |= (bits >> first & (1 << width) - 1) << low
        low += width
    return value


def placed(value: int, pieces: Pieces) -> int:
    """A number at the bits of a field."""
    bits = 0
    for first, width in pieces:
        bits |= (value & (1 << width) - 1) << first
        value >>= width
    return bits
