"""Which modifiers a vector instruction may have: those of its encodings that the emulator knows.

Sources: CDNA3 ISA, sections 12.16 (SDWA and DPP), 6.2 (output modifiers) and chapter 12 per opcode;
LLVM's assembler. What an encoding has no meaning for is refused, like what is not known of it.
"""

from __future__ import annotations

from mfmadsl.emulator.instructions.row import Row, Special
from mfmadsl.emulator.instructions.source import DPP_CONTROLS, DPP_MODIFIERS
from mfmadsl.emulator.machine.bits import width_of
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Register

SUB_WORD = frozenset(["dst_sel", "dst_unused", "src0_sel", "src1_sel"])
_ENCODINGS = ("e32", "e64", "sdwa", "dpp")


def base_name(name: str) -> str:
    """The mnemonic without its encoding: v_add_u32_e32 is v_add_u32."""
    for encoding in _ENCODINGS:
        if name.endswith(f"_{encoding}"):
            return base_name(name.removesuffix(f"_{encoding}"))
    return name


def encoding_of(instruction: Instruction) -> str:
    """sdwa, dpp, e32 or e64; without a suffix, its modifiers say it, and e64 is what has most."""
    for encoding in _ENCODINGS:
        if instruction.name.endswith(f"_{encoding}"):
            return encoding
    if SUB_WORD & set(instruction.modifiers) or is_extended(instruction):
        return "sdwa"
    return "dpp" if DPP_MODIFIERS & set(instruction.modifiers) else "e64"


def known_modifiers(instruction: Instruction, row: Row) -> bool:
    """Whether an instruction of a row has an encoding and modifiers that the row has."""
    encoding = encoding_of(instruction)
    if is_extended(instruction) and encoding != "sdwa":
        return False
    if encoding != "e64" and not row.has_short_form:
        return False
    plain = not instruction.modifiers and not has_register_modifiers(instruction)
    if encoding == "e32" or row.bare:
        return plain and encoding in ("e32", "e64")
    output = frozenset(["clamp", "mul", "div"]) if row.result.kind == "f" else frozenset()
    output = output | {"clamp"} if row.saturating else output
    if encoding == "e64":
        allowed = output | ({"op_sel"} if row.has_op_sel else frozenset())
        return _only(instruction, allowed) and _known_op_sel(instruction, row)
    if encoding == "dpp":
        return known_dpp(instruction, row.is_wide)
    if is_narrow_source(row):
        return _only(instruction, output | {"src0_sel"}) and not is_extended(instruction)
    if row.is_wide or row.accumulates:
        return False
    return known_sub_words(instruction, row.source_count, output)


def known_special_modifiers(instruction: Instruction, special: Special) -> bool:
    """Whether an instruction that is no row has an encoding and modifiers that it knows."""
    encoding = encoding_of(instruction)
    if special.sub_words and encoding in ("sdwa", "dpp"):
        return known_dpp(instruction) if encoding == "dpp" else known_sub_words(instruction, 2)
    if encoding in ("sdwa", "dpp") or set(instruction.modifiers) - special.modifiers:
        return False
    return not has_source_modifiers(instruction) or (
        special.signed and encoding != "e32" and not is_extended(instruction)
    )


def known_sub_words(
    instruction: Instruction, sources: int, others: frozenset[str] = frozenset()
) -> bool:
    """Whether all modifiers are SDWA's, for so many sources, or among others."""
    selections = {f"src{i}_sel" for i in range(sources)}
    if instruction.modifiers.get("dst_unused") == "UNUSED_SEXT":
        return False
    return _only(instruction, others | {"dst_sel", "dst_unused"} | selections)


def known_dpp(instruction: Instruction, wide: bool = False) -> bool:
    """Whether all modifiers are DPP's, with one control; of 64 bits there is but one."""
    controls = [name for name in instruction.modifiers if name in DPP_CONTROLS]
    if len(controls) != 1 or (wide and controls != ["row_newbcast"]):
        return False
    return _only(instruction, DPP_MODIFIERS)


def has_source_modifiers(instruction: Instruction) -> bool:
    """Whether an operand is negated, made positive, or extended."""
    return has_register_modifiers(instruction) or any(
        o.negate or o.absolute for o in instruction.operands if isinstance(o, Literal)
    )


def has_register_modifiers(instruction: Instruction) -> bool:
    """Whether a register is negated, made positive, or extended.

    The sign of a constant can be changed by the assembler itself.
    """
    return is_extended(instruction) or any(
        o.negate or o.absolute for o in instruction.operands if isinstance(o, Register)
    )


def is_extended(instruction: Instruction) -> bool:
    """Whether an operand is extended by its sign, as only SDWA does."""
    return any(isinstance(o, Register) and o.extend for o in instruction.operands)


def is_narrow_source(row: Row) -> bool:
    """Whether it is a conversion from eight-bit floats that takes one byte or two."""
    return row.kinds == ("u8",) or (row.kinds == ("u16",) and row.result.itemsize == 8)


def known_byte_choice(flags: list[int]) -> bool:
    """Whether flags of op_sel choose a byte of the target, of which the last two count."""
    return len(flags) in (3, 4) and not any(flags[:2])


def _only(instruction: Instruction, allowed: frozenset[str] | set[str]) -> bool:
    return set(instruction.modifiers) <= set(allowed) and _known_values(instruction)


def _known_values(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    scaled = modifiers.get("mul", "2") in ("2", "4") and modifiers.get("div", "2") == "2"
    return scaled and not {"mul", "div"} <= set(modifiers) and modifiers.get("clamp", "1") == "1"


def _known_op_sel(instruction: Instruction, row: Row) -> bool:
    """Whether op_sel chooses halves only of what has them, or a byte of the target."""
    flags = instruction.written_flags("op_sel")
    if flags is None:
        return True
    if row.part == 8:
        return known_byte_choice(flags)
    kinds = row.kinds[: row.source_count]
    if len(flags) not in (len(kinds), len(kinds) + 1):
        return False
    halves = [width_of(kind) < 32 for kind in kinds] + [row.result.itemsize == 2]
    if kinds[0] == "u8":  # its byte takes two flags
        halves[1] = True
    return all(half or not flag for flag, half in zip(flags, halves, strict=False))
