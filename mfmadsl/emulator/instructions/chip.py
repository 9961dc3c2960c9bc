"""What a chip does not take of the instructions that the emulator knows, as LLVM has it."""

from __future__ import annotations

from functools import cache

from mfmadsl.emulator.code_object.table import mnemonics_of
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register, spelled
from mfmadsl.model import Architecture

_MATRIX = ("v_mfma_", "v_smfmac_")
"""Those have tables for each chip, and names that LLVM prints otherwise."""

_ANY_TUPLE = "ds_read_b96_tr_b6"
"""Takes three registers from any one on (LLVM, `validateVGPRAlign`)."""


def not_of_chip(instruction: Instruction, chip: Architecture) -> str:
    """Why a chip does not take an instruction that others do; nothing where it does."""
    name = instruction.name
    if chip.family and not _has(chip.family, name):
        return f": {chip.name} does not have it"
    if not chip.even_tuples or name == _ANY_TUPLE:
        return ""
    for operand in instruction.operands:
        if isinstance(operand, Register) and operand.count > 1 and _is_odd_vector(operand):
            return f": several vector registers begin at an even one, unlike `{spelled(operand)}`"
    return ""


def _is_odd_vector(register: Register) -> bool:
    return register.index % 2 == 1 and register.bank != "s"


@cache
def _has(family: str, name: str) -> bool:
    return name.startswith(_MATRIX) or base_name(name) in _names(family)


@cache
def _names(family: str) -> frozenset[str]:
    return frozenset(map(base_name, mnemonics_of(family)))
