"""The operands of an instruction, as LLVM's AMDGPU assembler spells them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from functools import lru_cache

from mfmadsl.emulator.error import EmulationError, OperandError

VCC, M0, EXEC = 106, 124, 126
"""Numbers of the special registers among the scalar ones (CDNA3 ISA, section 5.2)."""

MODE = 128
"""The number here of the MODE register (CDNA3 ISA, section 4.2), which has none of its own."""

SHARED_BASE, SHARED_LIMIT, PRIVATE_BASE, PRIVATE_LIMIT = 130, 132, 134, 136
"""Numbers here of pairs of registers that name the apertures of flat addresses; they are sources
only (CDNA3 ISA, section 5.2)."""

INDEXED = ("SRC0", "SRC1", "SRC2", "DST")
"""The operands of vector instructions that M0 may be added to, from bit 12 of M0 on."""

SCALAR_REGISTERS = 138
LAST_SCALAR = 101  # those above have names of their own

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
    "xnack_mask_lo": (104, 1),
    "xnack_mask_hi": (105, 1),
    "src_shared_base": (SHARED_BASE, 2),
    "src_shared_limit": (SHARED_LIMIT, 2),
    "src_private_base": (PRIVATE_BASE, 2),
    "src_private_limit": (PRIVATE_LIMIT, 2),
}
_REGISTER = re.compile(r"([vsa])(?:(\d+)|\[(\d+)(?::(\d+))?\])")
_INTEGER = re.compile(r"-?(0x[0-9a-f]+|0|[1-9]\d*)", re.IGNORECASE)
_FLOAT = re.compile(r"-?((\d+\.\d*|\.\d+)(e[-+]?\d+)?|\d+e[-+]?\d+)", re.IGNORECASE)


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
        """The numbers of its registers."""
        return range(self.index, self.index + self.count)


@dataclass(frozen=True)
class Literal:
    """A constant in the instruction; `text` is needed because its meaning depends on the type.

    `negate` and `absolute` are the source modifiers, which change the sign bit.
    """

    text: str
    negate: bool = False
    absolute: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it is written as a float."""
        return not _INTEGER.fullmatch(self.text)

    def bits(self, width: int, floating: bool, signed: bool = False) -> int:
        """The constant as a source of `width` bits, which is a float or a signed integer.

        Inline constants have the width of the source. Anything else is a literal of 32 bits: the
        high word of a 64-bit float, sign-extended to a signed integer of 64 bits and zero-extended
        to others (CDNA3 ISA, section 5.2; LLVM, `AMDGPUAsmParser` and `isOperandLegal`). Raises
        OperandError where the constant does not fit.
        """
        bits = self._unmodified(width, floating, signed)
        sign = 1 << (width - 1)
        bits = bits & ~sign if self.absolute else bits
        return bits ^ sign if self.negate else bits

    @property
    def is_inline(self) -> bool:
        """Whether it costs no literal."""
        if _INTEGER.fullmatch(self.text):
            return int(self.text, 0) in _INLINE_INTEGERS
        return float_bits(float(self.text), 64) in _INLINE_DOUBLES or self.text == "0.15915494"

    @property
    def is_negative_integer(self) -> bool:
        """Whether it is written as an integer below zero."""
        return bool(_INTEGER.fullmatch(self.text)) and int(self.text, 0) < 0

    def _unmodified(self, width: int, floating: bool, signed: bool) -> int:
        if not _INTEGER.fullmatch(self.text):
            return self._float_bits(width, floating)
        value = int(self.text, 0)
        # All 64 bits of a negative number; of a float those of an inline constant only.
        if width == 64 and value >> 63 == 1:
            negative = value - (1 << 64)
            value = value if floating and negative not in _INLINE_INTEGERS else negative
        if width == 16 and value >> 15 == 0x1FFFF:  # LLVM stores a negative one in all 32 bits
            value -= 1 << 32
        stored = min(width, 32)
        if not -(1 << (stored - 1)) <= value < 1 << stored:
            raise OperandError(f"the constant {self.text} has more than {stored} bits")
        if width < 64 or value in _INLINE_INTEGERS:
            return value & ((1 << width) - 1)
        word = value & 0xFFFF_FFFF
        if floating:
            return word << 32
        return word | 0xFFFF_FFFF << 32 if signed and word >> 31 else word

    def _float_bits(self, width: int, floating: bool) -> int:
        value = float(self.text)
        if floating:
            bits = self._rounded_bits(value, width)
            literal = width == 64 and bits not in _INLINE_DOUBLES
            return bits & ~0xFFFF_FFFF if literal else bits
        if width == 64 and float_bits(value, 64) in _INLINE_DOUBLES:
            return float_bits(value, 64)
        if width != 32:
            raise OperandError(f"the constant {self.text} is no integer of {width} bits")
        return self._rounded_bits(value, 32)

    def _rounded_bits(self, value: float, width: int) -> int:
        try:
            return float_bits(value, width)
        except OverflowError:
            raise OperandError(f"the constant {self.text} has more than {width} bits") from None


@dataclass(frozen=True)
class AssemblySymbol:
    """A label, or a word such as `off`."""

    name: str


Operand = Register | Literal | AssemblySymbol


def float_bits(value: float, width: int) -> int:
    """The pattern of a floating-point number of 16, 32 or 64 bits."""
    code, integer = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[width]
    return int(struct.unpack(integer, struct.pack(code, value))[0])


_INLINE_INTEGERS = range(-16, 65)
_INLINE_DOUBLES = frozenset(
    float_bits(sign * size, 64)
    for size in (0.0, 0.5, 1.0, 2.0, 4.0, 0.15915494309189532)
    for sign in (1, -1)
    if sign > 0 or size in (0.5, 1.0, 2.0, 4.0)
)
"""Constants that cost no literal (CDNA3 ISA, section 5.2); the last one is 1/(2 pi)."""


def check_source(operand: Operand, kind: str, banks: str = "vs") -> None:
    """Whether an operand may be a source of a type, from one of the banks of registers.

    Raises OperandError if it may not: another number of registers, a constant that does not fit, or
    a modifier that the type does not have.
    """
    floating, width = kind[0] in "fx", int(kind[1:])
    if isinstance(operand, AssemblySymbol):
        raise OperandError(f"`{operand.name}` is no source")
    if (operand.negate or operand.absolute) and not floating:
        raise OperandError("neg and abs are of floats")
    if isinstance(operand, Literal) and "s" in banks:  # constants are numbered among those
        operand.bits(width, kind[0] == "f", kind[0] == "i")
        return
    register = check_registers(operand, max(1, width // 32), banks)
    if register.extend and floating:
        raise OperandError("sext is of integers")


def as_register(operand: Operand) -> Register:
    """An operand that has to be registers. Raises OperandError if it is not."""
    if not isinstance(operand, Register):
        raise OperandError(f"`{spelled(operand)}` is no register")
    return operand


def check_registers(operand: Operand, count: int, banks: str) -> Register:
    """An operand as so many registers of one of the banks. Raises OperandError if it is not."""
    if not isinstance(operand, Register) or operand.bank not in banks or operand.count != count:
        wanted = (
            f"a register {' or '.join(banks)}"
            if count == 1
            else (f"{count} registers {' or '.join(banks)}")
        )
        raise OperandError(f"`{spelled(operand)}` is not {wanted}")
    return operand


def spelled(operand: Operand) -> str:
    """An operand as an assembler writes it, without its modifiers; special registers by number."""
    if isinstance(operand, Literal):
        return operand.text
    if isinstance(operand, AssemblySymbol):
        return operand.name
    if operand.count == 1:
        return f"{operand.bank}{operand.index}"
    return f"{operand.bank}[{operand.index}:{operand.index + operand.count - 1}]"


def check_target(operand: Operand, count: int, bank: str = "v") -> Register:
    """An operand that is written. Raises OperandError if it cannot be."""
    register = check_registers(operand, count, bank)
    if register.bank == "s" and register.index > EXEC + 1:
        raise OperandError("it is a source only")
    if register.negate or register.absolute or register.extend:
        raise OperandError("a target has no modifiers")
    return register


def check_apart(target: Register, *sources: Operand) -> None:
    """Whether no source is in a target which is written before all of them are read.

    LLVM calls such targets `@earlyclobber`. Raises OperandError if one is.
    """
    for source in sources:
        if not isinstance(source, Register) or source.bank != target.bank:
            continue
        if set(source.indices) & set(target.indices):
            text = spelled(source)
            raise OperandError(f"`{text}` is in the target, which is written before it is read")


def parse_integer(text: str) -> int | None:
    """A whole number, decimal or hexadecimal; None for anything else."""
    return int(text, 0) if _INTEGER.fullmatch(text) else None


def _check_scalars(text: str, first: int, last: int) -> None:
    """Raises EmulationError for scalar registers that there are not (CDNA3 ISA, section 5.2)."""
    if last > LAST_SCALAR:
        raise EmulationError(f"there is no `{text}`: the last scalar register is s{LAST_SCALAR}")
    count = last - first + 1
    step = count if count < 3 else 4
    if first % step:
        raise EmulationError(
            f"there is no `{text}`: {count} scalar registers begin at a multiple of {step}"
        )


@lru_cache(maxsize=4096)  # a program names few operands, each many times
def parse_operand(text: str) -> Operand:
    """One operand. Raises EmulationError if it is none that is known."""
    if match := re.fullmatch(r"sext\((.+)\)", text):
        extended = parse_operand(match[1])
        if isinstance(extended, Register):
            return replace(extended, extend=True)
    plain, negate, absolute = text, False, False
    if match := re.fullmatch(r"-([^\d.].*)|neg\((.+)\)", plain):
        plain, negate = match[1] or match[2], True
    if match := re.fullmatch(r"\|(.+)\||abs\((.+)\)", plain):
        plain, absolute = match[1] or match[2], True
    if plain in _NAMED:
        index, count = _NAMED[plain]
        return Register("s", index, count, negate, absolute)
    if match := _REGISTER.fullmatch(plain):
        first = int(match[2] or match[3])
        last = int(match[4] or first)
        if last < first:
            raise EmulationError(f"there is no `{text}`: its last register is before its first")
        if match[1] == "s":
            _check_scalars(text, first, last)
        return Register(match[1], first, last - first + 1, negate, absolute)
    if _INTEGER.fullmatch(plain) or _FLOAT.fullmatch(plain):
        return Literal(plain, negate, absolute)
    if re.fullmatch(r"(?!\d)[.\w$@]+", plain):
        return AssemblySymbol(plain)
    raise EmulationError(f"cannot read the operand `{text}`")
