"""An instruction's bits in LLVM's syntax.

Sources: CDNA3 ISA, section 5.2 (numbers of scalar operands), sections 12.15 and 13.3 (DPP and
SDWA), section 4.4 (`s_waitcnt`); LLVM, `AMDGPUInstPrinter`, for how it is written.
"""

from __future__ import annotations

from collections.abc import Callable

from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.formats import extracted
from mfmadsl.emulator.code_object.table import EncodedField, EncodingRow, ModifierField
from mfmadsl.emulator.text.operand import INDEXED
from mfmadsl.model import Architecture

LITERAL = 255
_LAST_SCALAR = 101
_NAMED_SCALARS = {
    (102, 1): "flat_scratch_lo", (103, 1): "flat_scratch_hi", (102, 2): "flat_scratch",
    (104, 1): "xnack_mask_lo", (105, 1): "xnack_mask_hi", (104, 2): "xnack_mask",
    (106, 1): "vcc_lo", (107, 1): "vcc_hi", (106, 2): "vcc",
    (124, 1): "m0",
    (126, 1): "exec_lo", (127, 1): "exec_hi", (126, 2): "exec",
}  # fmt: skip
_VCC = 106
_FIRST_TRAP, _LAST_TRAP = 108, 123
_NAMED_SOURCES = {
    235: "src_shared_base", 236: "src_shared_limit", 237: "src_private_base",
    238: "src_private_limit", 239: "src_pops_exiting_wave_id",
    240: "0.5", 241: "-0.5", 242: "1.0", 243: "-1.0", 244: "2.0", 245: "-2.0", 246: "4.0",
    247: "-4.0", 251: "src_vccz", 252: "src_execz", 253: "src_scc", 254: "src_lds_direct",
}  # fmt: skip
_INVERSE_OF_TWO_PI = 248

SOURCES = frozenset(["ssrc0", "ssrc1", "ssrc", "src0", "src1", "src2", "sdwa0", "sdwa1",
                      "matrix_src0", "matrix_src1", "matrix_src2"])  # fmt: skip
_SCALARS = {"sdst": 1, "sdata": 1, "saddr": 1, "sdwa_sdst": 1, "soffset": 1, "soffset_low": 1,
            "sbase": 2, "srsrc": 4}  # fmt: skip
"""Fields of scalar registers, which are counted in so many."""

_ELEMENT_REGISTERS = (8, 8, 6, 6, 4)
"""Registers of 32 elements of each format of f8f6f4 (CDNA4 ISA, section 7.1)."""

_SELECTIONS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
_UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
_OUTPUT_MODIFIERS = ("", "mul:2", "mul:4", "div:2")
_DPP_ROWS = {0x100: "row_shl", 0x110: "row_shr", 0x120: "row_ror", 0x150: "row_newbcast"}
_DPP_NAMED = {
    0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1",
    0x140: "row_mirror", 0x141: "row_half_mirror", 0x142: "row_bcast:15", 0x143: "row_bcast:31",
}  # fmt: skip
_ORDER = ("format", "idxen", "offen", "offset0", "offset1", "offset", "gds", "glc", "sc0", "slc",
          "nt", "scc", "sc1", "lds")  # fmt: skip
_SPELLED_LAST = ("dst_sel", "dst_unused", "src0_sel", "src1_sel")
_HARDWARE_REGISTERS = {1: "HW_REG_MODE", 15: "HW_REG_SH_MEM_BASES"}


def spelled(row: EncodingRow, bits: int, literal: int | None, chip: Architecture) -> str:
    """An instruction; a branch with the number of words that it jumps.

    `literal` is the word after the instruction. Raises CodeObjectError for what is no operand.
    """
    reader = _Reader(row, bits, literal, chip)
    operands = ", ".join(reader.operand(o) for o in row.operands)
    modifiers = [*row.suffix, *(text for m in row.modifiers if (text := reader.modifier(m)))]
    modifiers.sort(key=_rank)
    return " ".join([row.name, *([operands] if operands else []), *modifiers])


def _rank(modifier: str) -> int:
    """LLVM takes modifiers of memory instructions in one order, and what SDWA selects last."""
    name = modifier.partition(":")[0]
    if name in _SPELLED_LAST:
        return len(_ORDER) + 1
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


class _Reader:
    """One instruction's bits, by its row."""

    def __init__(
        self, row: EncodingRow, bits: int, literal: int | None, chip: Architecture
    ) -> None:
        self._row, self._bits, self._literal, self._chip = row, bits, literal, chip

    def _value(self, name: str) -> int:
        return extracted(self._bits, self._row.fields[name])

    def _is_set(self, name: str) -> bool:
        return name in self._row.fields and self._value(name) == 1

    def operand(self, operand: EncodedField) -> str:
        name = operand.name
        if name not in self._row.fields:
            return name
        value = self._value(name)
        if name in SOURCES:
            return self._modified(name, self._source(operand, value))
        if name == "sdwa_sdst" and value == _VCC:
            raise CodeObjectError("there is another encoding for vcc as its target")
        if name in _SCALARS:
            return scalar_registers(value * _SCALARS[name], self._count(operand))
        if name in _CONSTANTS:
            return _CONSTANTS[name](value, self._chip)
        if operand.bank == "s":
            return scalar_registers(value, self._count(operand))
        return self._modified(name, self._vector(operand, value))

    def _count(self, operand: EncodedField) -> int:
        if operand.registers in ("cbsz", "blgp"):
            elements = self._value(operand.registers)
            if elements >= len(_ELEMENT_REGISTERS):
                raise CodeObjectError(f"there is no {operand.registers}:{elements}")
            return _ELEMENT_REGISTERS[elements]
        return int(operand.registers or 1)

    def _source(self, operand: EncodedField, value: int) -> str:
        if operand.name.startswith("sdwa"):  # here the ninth bit is that of a scalar
            value ^= 256
        if value >= 256:
            if operand.bank == "s":
                raise CodeObjectError(f"{operand.name} is no vector register")
            return self._vector(operand, value - 256)
        count = self._count(operand)
        if value == LITERAL:
            if self._literal is None:
                raise CodeObjectError("it takes no constant of 32 bits")
            if count > 1 and self._literal <= 64:  # written like that, it would be an inline one
                raise CodeObjectError(f"the constant {self._literal} stands in a word of its own")
            return f"0x{self._literal:x}"
        if value < 128:
            return scalar_registers(value, count)
        if value <= 192:
            return str(value - 128)
        if value <= 208:
            return str(192 - value)
        if value == _INVERSE_OF_TWO_PI:
            return "0.15915494" if count == 1 else "0.15915494309189532"
        if value not in _NAMED_SOURCES:
            raise CodeObjectError(f"there is no scalar operand {value}")
        return _NAMED_SOURCES[value]

    def _vector(self, operand: EncodedField, index: int) -> str:
        count = self._count(operand)
        bank = "v"
        if operand.bank == "a" or (operand.bank.isdigit() and self._is_set(f"@{operand.bank}")):
            bank = "a"
        if index + count > 256:
            raise CodeObjectError(f"there is no {bank}{index + count - 1}")
        if count > 1 and index % 2 and not self._chip.separate_files:
            raise CodeObjectError(f"{count} registers do not begin at {bank}{index}, which is odd")
        return _registers(bank, index, count)

    def _modified(self, name: str, text: str) -> str:
        """An operand with the modifiers that are written at it."""
        place = name[-1]
        if self._is_set(f"abs{place}"):
            text = f"|{text}|"
        if self._is_set(f"neg{place}"):
            text = f"neg({text})" if text[0].isdigit() or text[0] == "-" else f"-{text}"
        return f"sext({text})" if self._is_set(f"sext{place}") else text

    def modifier(self, modifier: ModifierField) -> str:
        name, pieces = modifier.name, modifier.pieces
        value, usual = extracted(self._bits, pieces), extracted(self._row.base, pieces)
        if name in _SPELLED:
            return _SPELLED[name](value)
        if name[:-1] in ("neg", "abs", "sext"):
            return ""
        # Without its offset a scalar load has another encoding.
        if value == usual and (self._row.format, name) != ("smem", "offset"):
            return ""
        if modifier.kind == "flag":
            return name
        if name == "bitop3":
            return f"bitop3:0x{value:x}"
        if modifier.kind == "list":
            flags = (str(self._bits >> bit & 1) if bit >= 0 else "0" for bit in modifier.bits)
            return f"{name}:[{','.join(flags)}]"
        return f"{name}:{_signed(value, modifier.bits[1]) if modifier.kind == 'signed' else value}"


def scalar_registers(index: int, count: int) -> str:
    """Scalar registers by their number. Raises CodeObjectError where there are no such ones."""
    if (index, count) in _NAMED_SCALARS:
        return _NAMED_SCALARS[index, count]
    last = index + count - 1
    if index % min(count, 4) == 0:
        if last <= _LAST_SCALAR:
            return _registers("s", index, count)
        if index >= _FIRST_TRAP and last <= _LAST_TRAP:
            return _registers("ttmp", index - _FIRST_TRAP, count)
    raise CodeObjectError(f"there are no {count} scalar registers from {index} on")


def _registers(bank: str, index: int, count: int) -> str:
    return f"{bank}{index}" if count == 1 else f"{bank}[{index}:{index + count - 1}]"


def _signed(value: int, width: int) -> int:
    return value - (value >> (width - 1) << width)


def _displacement(value: int, chip: Architecture) -> str:
    """The constant offset of a scalar load."""
    del chip
    number = _signed(value, 21)
    return f"-0x{-number:x}" if number < 0 else f"0x{number:x}"


def _hardware_register(value: int, chip: Architecture) -> str:
    del chip
    register, low, width = value & 63, value >> 6 & 31, (value >> 11 & 31) + 1
    return f"hwreg({_HARDWARE_REGISTERS.get(register, register)}, {low}, {width})"


def _wait(value: int, chip: Architecture) -> str:
    """The counters that are waited for; all of them where none is, or a number for other bits."""
    counts = {counter.name: counter.decoded(value) for counter in chip.wait_counters}
    if chip.waits(**counts) != value:
        return str(value)
    waited = [
        f"{counter.name}({counts[counter.name]})"
        for counter in chip.wait_counters
        if counts[counter.name] < counter.largest
    ]
    return " ".join(waited or [f"{name}({count})" for name, count in counts.items()])


def _indexed(value: int, chip: Architecture) -> str:
    """The operands of vector instructions that M0 is added to."""
    del chip
    return f"gpr_idx({','.join(name for i, name in enumerate(INDEXED) if value >> i & 1)})"


def _named(names: tuple[str, ...], prefix: str, value: int) -> str:
    if value >= len(names):
        raise CodeObjectError(f"there is no selection {value}")
    return f"{prefix}:{names[value]}"


def _lanes(control: int) -> str:
    """The control of DPP."""
    if control < 0x100:
        return f"quad_perm:[{','.join(str(control >> 2 * i & 3) for i in range(4))}]"
    if control in _DPP_NAMED:
        return _DPP_NAMED[control]
    row = _DPP_ROWS.get(control & 0x1F0)
    if row is None or (not control & 15 and row != "row_newbcast"):
        raise CodeObjectError(f"there is no DPP control 0x{control:x}")
    return f"{row}:{control & 15}"


_CONSTANTS: dict[str, Callable[[int, Architecture], str]] = {
    "simm16": lambda value, _: f"0x{value:x}",
    "literal": lambda value, _: f"0x{value:x}",
    "number": lambda value, _: str(value),
    "label": lambda value, _: str(value),
    "displacement": _displacement,
    "hwreg": _hardware_register,
    "wait": _wait,
    "gpr_idx": _indexed,
    "gpr_idx_on": _indexed,
}
_SPELLED: dict[str, Callable[[int], str]] = {
    "format": lambda value: f"format:{value}",  # without it LLVM takes another one than 0
    "omod": lambda value: _OUTPUT_MODIFIERS[value],
    "dst_sel": lambda value: _named(_SELECTIONS, "dst_sel", value),
    "src0_sel": lambda value: _named(_SELECTIONS, "src0_sel", value),
    "src1_sel": lambda value: _named(_SELECTIONS, "src1_sel", value),
    "dst_unused": lambda value: _named(_UNUSED, "dst_unused", value),
    "dpp": _lanes,
    "row_mask": lambda value: f"row_mask:0x{value:x}",
    "bank_mask": lambda value: f"bank_mask:0x{value:x}",
    "bound_ctrl": lambda value: "bound_ctrl:0" if value else "",
}
