"""Which modifiers a vector instruction may have: those of its encodings that the emulator knows.

Sources: CDNA3 ISA, sections 12.16 (SDWA and DPP), 6.2 (output modifiers) and chapter 12 per opcode;
LLVM's assembler. What an encoding has no meaning for is refused, like what is not known of it.
"""

from __future__ import annotations

import re

from mfmadsl.emulator.instructions.row import Row
from mfmadsl.emulator.instructions.source import DPP_CONTROLS, DPP_MODIFIERS
from mfmadsl.emulator.machine.bits import width_of
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Register

SUB_WORD = frozenset(["dst_sel", "dst_unused", "src0_sel", "src1_sel"])
_ENCODINGS = ("e32", "e64", "sdwa", "dpp")
_VOP3_ONLY = frozenset(
    [
        *(f"v_{name}_f64" for name in ("add", "mul", "max", "min", "ldexp")),
        *(f"v_{name}_i{bits}" for name in ("add", "sub") for bits in (16, 32)),
        *(f"v_cvt_{name}_f32" for name in ("pkrtz_f16", "pk_f16", "pk_bf16", "pknorm_i16",
                                           "pknorm_u16", "pk_fp8", "pk_bf8")),
        "v_ldexp_f32", "v_mul_legacy_f32", "v_bfm_b32", "v_lshlrev_b64", "v_lshrrev_b64",
        "v_ashrrev_i64", "v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_bcnt_u32_b32",
        "v_cvt_pk_u16_u32", "v_cvt_pk_i16_i32", "v_pack_b32_f16",
    ]
)  # fmt: skip
_WITH_CONSTANT = re.compile(r"v_(fma|mad)(mk|ak)_f\d+")
_ACCUMULATION = re.compile(r"v_accvgpr_(read|write|mov)_b32")


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
    name, encoding = base_name(instruction.name), encoding_of(instruction)
    if is_extended(instruction) and encoding != "sdwa":
        return False
    sources = len(row.kinds) - row.reads_mode
    wide = row.result.itemsize == 8 or any(width_of(kind) == 64 for kind in row.kinds)
    plain = not instruction.modifiers and not has_register_modifiers(instruction)
    if match := _ACCUMULATION.fullmatch(name):
        return plain and encoding in ("e64", "e32" if match[1] == "mov" else "e64")
    if _WITH_CONSTANT.fullmatch(name):
        return plain
    has_short = name not in _VOP3_ONLY and (sources < 3 or row.accumulates)
    has_short = has_short and not name.startswith("v_cvt_scalef32")
    output = frozenset(["clamp", "mul", "div"]) if row.result.kind == "f" else frozenset()
    output = output | {"clamp"} if row.saturating else output
    if encoding == "e64":
        allowed = output | ({"op_sel"} if has_op_sel(name, row) else frozenset())
        return _only(instruction, allowed) and _known_op_sel(instruction, row)
    if not has_short:
        return False
    if encoding == "e32":
        return plain
    if encoding == "dpp":
        return known_dpp(instruction, wide)
    if is_narrow_source(row):
        return _only(instruction, output | {"src0_sel"}) and not is_extended(instruction)
    if wide or row.accumulates:
        return False
    return known_sub_words(instruction, sources, output)


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
    """The same of registers: of a constant, the assembler can change the sign itself."""
    return is_extended(instruction) or any(
        o.negate or o.absolute for o in instruction.operands if isinstance(o, Register)
    )


def is_extended(instruction: Instruction) -> bool:
    """Whether an operand is extended by its sign, as only SDWA does."""
    return any(isinstance(o, Register) and o.extend for o in instruction.operands)


def has_op_sel(name: str, row: Row) -> bool:
    """Whether op_sel says which halves (or bytes) of registers an instruction takes and gives."""
    narrow = row.result.itemsize == 2 or any(width_of(kind) < 32 for kind in row.kinds)
    no_short_form = name in _VOP3_ONLY or len(row.kinds) > 2 or name.startswith("v_cvt_scalef32")
    return narrow and no_short_form and "_legacy_" not in name and not row.accumulates


def is_narrow_source(row: Row) -> bool:
    """Whether it is a conversion from eight-bit floats that takes one byte or two."""
    return row.kinds == ("u8",) or (row.kinds == ("u16",) and row.result.itemsize == 8)


def _only(instruction: Instruction, allowed: frozenset[str] | set[str]) -> bool:
    return set(instruction.modifiers) <= set(allowed) and _known_values(instruction)


def _known_values(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    scaled = modifiers.get("mul", "2") in ("2", "4") and modifiers.get("div", "2") == "2"
    return scaled and not {"mul", "div"} <= set(modifiers) and modifiers.get("clamp", "1") == "1"


def _known_op_sel(instruction: Instruction, row: Row) -> bool:
    """Whether op_sel chooses halves only of what has them."""
    if "op_sel" not in instruction.modifiers:
        return True
    kinds = row.kinds[: len(row.kinds) - row.reads_mode]
    flags = instruction.flags("op_sel", 0)
    if len(flags) not in (len(kinds), len(kinds) + 1) or set(flags) - {0, 1}:
        return False
    halves = [width_of(kind) < 32 for kind in kinds] + [row.result.itemsize == 2]
    if kinds[0] == "u8":  # its byte takes two flags
        halves[1] = True
    return all(half or not flag for flag, half in zip(flags, halves, strict=False))
