"""The page of opcodes tells what LLVM's assembler and the emulator say."""

from __future__ import annotations

import os
import random
import re

import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.control import PASSED
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.model import ARCHITECTURES
from scripts.opcodes import PAGE, counts, missing, mnemonics, reason_of

CHIP = random.Random(os.environ["MFMADSL_SEED"]).choice(list(ARCHITECTURES.values()))


def listed(arch: str) -> set[str]:
    """The opcodes that the page lists as not executed."""
    lines = [line.split(" | ") for line in PAGE.read_text().splitlines() if "| `" in line]
    return {name for names, chips, _ in lines if arch in chips.split(", ")
            for name in re.findall(r"`(\w+)`", names)}  # fmt: skip


def test_the_page_has_the_opcodes_that_are_not_executed() -> None:
    assert counts(CHIP) in PAGE.read_text().splitlines()
    assert listed(CHIP.name) == set(missing(CHIP))


def test_the_assembler_knows_instructions_of_all_kinds() -> None:
    names = set(mnemonics())
    assert {"s_add_u32", "v_add_f32", "ds_read_b32", "flat_load_dword"} <= names


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_is_not_executed_is_refused_and_has_a_reason(arch: str) -> None:
    for name in listed(arch):
        assert reason_of(name), name
        assert name not in PASSED
        with pytest.raises(EmulationError, match="unknown instruction"):
            compile_instruction(parse_instruction(f"{name} v0, v1, v2"), Machine(arch))
