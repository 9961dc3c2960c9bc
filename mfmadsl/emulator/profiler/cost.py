"""How long an instruction keeps what executes it: of what its row says (see `Operation.slots`) and
the chip."""

from __future__ import annotations

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.model import CDNA, Architecture

SLOT = CDNA.issue_slot
"""Cycles between two issue slots of a SIMD, the same on all chips."""


_UNKNOWN = {"s_setvskip": "a skipped instruction"}


def check_costs(program: Program) -> None:
    """Raise EmulationError for a program with something whose cost no source tells."""
    for instruction in program.instructions:
        if instruction.name in _UNKNOWN:
            raise EmulationError(
                f"it is not modelled: no source says what {_UNKNOWN[instruction.name]} costs",
                instruction.line, instruction.text,
            )  # fmt: skip


def busy_cycles(chip: Architecture, operation: Operation) -> int:
    """Cycles that the unit of an instruction is busy with it."""
    match operation.slots:
        case "wide":
            return chip.wide_slots * SLOT
        case "transcendental":
            return chip.transcendental_slots * SLOT
        case slots:
            return slots * SLOT


def issue_cycles(chip: Architecture, operation: Operation) -> int:
    """Cycles until the wave goes on; a matrix core works while its wave does."""
    return SLOT if operation.unit == "matrix" else busy_cycles(chip, operation)
