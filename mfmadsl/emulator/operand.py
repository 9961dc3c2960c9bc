"""The operands of an instruction, as LLVM's AMDGPU assembler spells them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace

from mfmadsl.emulator.error import EmulationError

VCC, M0, EXEC = 106, 124, 126
"""Numbers of the special registers among the scalar ones (CDNA3 ISA, section 5.2)."""

MODE = 128
"""The number here of the MODE register (CDNA3 ISA, section 4.2), which has none of its own."""

SCALAR_REGISTERS = 129

_NAMED = {
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
    "flat_scratch": (102, 2),
    "flat_scratch_lo": (102, 1),
    "flat_scratch_hi": (103, 1),
    "xnack_mask": (104, 2),
}
_REGISTER = re.compile(r"([vsa])(?:(\d+)|\[(\d+)(?::(\d+))?\])")
_INTEGER = re.compile(r"-?(0x[0-9a-f]+|\d+)", re.IGNORECASE)
_FLOAT = re.compile(r"-?(\d+\.\d*|\.\d+|\d+)(e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Register:
    """`count` consecutive registers from `index`; `bank` is v, s or a.

    `negate` and `absolute` are the source modifiers of floating-point instructions, `extend` that
    of integers in an SDWA instruction.
    """

    bank: str
    index: int
    count: int
    negate: bool = False
    absolute: bool = False
    extend: bool = False

    @property
    def indices(self) -> range:
        return range(self.index, self.index + self.count)


@dataclass(frozen=True)
class Literal:
    """A constant in the instruction; `text` is needed because its meaning depends on the type.

    `negate` is the source modifier, which changes the sign bit.
    """

    text: str
    negate: bool = False

    @property
    def is_float(self) -> bool:
        return not _INTEGER.fullmatch(self.text)

    def bits(self, width: int, floating: bool) -> int:
        """The constant as `width` bits: floats in that format, integers sign-extended."""
        if _INTEGER.fullmatch(self.text):
            bits = int(self.text, 0) & ((1 << width) - 1)
        else:
            bits = float_bits(float(self.text), width if floating else 32)
        return bits ^ 1 << (width - 1) if self.negate else bits


@dataclass(frozen=True)
class Symbol:
    """A label, or a word such as `off`."""

    name: str


Operand = Register | Literal | Symbol


def float_bits(value: float, width: int) -> int:
    """The pattern of a floating-point number of 16, 32 or 64 bits."""
    code, integer = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[width]
    return int(struct.unpack(integer, struct.pack(code, value))[0])


def parse_operand(text: str) -> Operand:
    """One operand. Raises EmulationError if it is none that is known."""
    if match := re.fullmatch(r"sext\((.+)\)", text):
        extended = parse_operand(match[1])
        if isinstance(extended, Register):
            return replace(extended, extend=True)
    plain, negate, absolute = text, False, False
    if plain.startswith("-") and not plain[1:2].isdigit():
        plain, negate = plain[1:], True
    if match := re.fullmatch(r"\|(.+)\||abs\((.+)\)", plain):
        plain, absolute = match[1] or match[2], True
    if match := re.fullmatch(r"neg\((.+)\)", plain):
        plain, negate = match[1], True
    if plain in _NAMED:
        index, count = _NAMED[plain]
        return Register("s", index, count, negate, absolute)
    if match := _REGISTER.fullmatch(plain):
        first = int(match[2] or match[3])
        last = int(match[4] or first)
        return Register(match[1], first, last - first + 1, negate, absolute)
    if _INTEGER.fullmatch(plain) or _FLOAT.fullmatch(plain):
        return Literal(plain, negate) if negate else Literal(text)
    if re.fullmatch(r"[.\w$@]+", plain):
        return Symbol(plain)
    raise EmulationError(f"cannot read the operand `{text}`")
