"""What source and output modifiers do, on bits (CDNA3 ISA, sections 5.2, 6.2 and 12.16)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.emulator.instructions.manual.bits import FORMATS, number, rounded, signed

INLINE_FLOATS = {"0.5": 0.5, "-4.0": -4.0, "0.15915494309189532": 0.15915494309189532}


def constant(text: str, kind: str) -> int:
    """A constant as a source: inline ones have its width, literals are 32 bits that are extended.

    A literal is the high word of an f64, is sign-extended to an i64 and zero-extended to others.
    """
    bits = int(kind[1:])
    if text in INLINE_FLOATS:
        integer_width = {16: "", 32: "f32", 64: "f64"}[bits]
        return rounded(INLINE_FLOATS[text], kind if kind[0] == "f" else integer_width)
    value = int(text, 0)
    if -16 <= value <= 64 or bits < 64:
        return value % (1 << bits)
    word = value % 2**32
    if kind[0] == "f":
        return word << 32
    return (signed(word) if kind[0] == "i" else word) % (1 << 64)


@dataclass(frozen=True)
class Source:
    """One source of an instruction: a constant or a register, and what is done to it.

    `selection` is the lowest bit and the width of what SDWA, or op_sel, takes of the register.
    """

    constant: str = ""
    negate: bool = False
    absolute: bool = False
    extend: bool = False
    selection: tuple[int, int] | None = None

    def spelled(self, register: str) -> str:
        text = self.constant or register
        text = f"|{text}|" if self.absolute else text
        text = f"sext({text})" if self.extend else text
        return f"-{text}" if self.negate else text

    def read(self, register: int, kind: str) -> int:
        """The source's bits, of those of its register."""
        bits = int(kind[1:])
        value = constant(self.constant, kind) if self.constant else register
        if self.selection:
            low, width = self.selection
            value = value >> low & ((1 << width) - 1)
            value = signed(value, width) if self.extend else value
        value %= 1 << bits
        sign = 1 << (bits - 1)
        value = value & ~sign if self.absolute else value
        return value ^ sign if self.negate else value


def clamped_float(bits: int, kind: str) -> int:
    """To [0, 1], and NaN to 0, as DX10_CLAMP has it."""
    x = number(bits, kind)
    if math.isnan(x) or x <= 0:
        return 0
    return rounded(min(x, 1.0), kind)


def scaled_float(bits: int, kind: str, factor: float) -> int:
    """Times the factor of the output modifier, in a mode that flushes denormals and is not IEEE."""
    exponent, mantissa = FORMATS[kind]
    result = rounded(number(bits, kind) * factor, kind)
    return result if result >> mantissa & ((1 << exponent) - 1) else 0
