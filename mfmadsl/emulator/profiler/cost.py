"""How long an instruction keeps what executes it: of what its row says (see `Operation.slots`) and
the chip."""

from __future__ import annotations

import re

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.model import CDNA, Architecture

SLOT = CDNA.issue_slot
"""Cycles between two issue slots of a SIMD, the same on all chips."""


_UNKNOWN = {
    r"s_setvskip": "what a skipped instruction costs",
    r"v_cvt_scalef32_(\w*pk32|2xpk16|sr_pk)_|v_mqsad_u32_u8": "how many passes it takes",
}
"""What no source says, of instructions. Of those of several passes LLVM never lets a source lie in
the target, which is all that it knows of them (pull request 188809)."""


def check_costs(program: Program) -> None:
    """Raise EmulationError for a program with something whose cost no source tells."""
    for instruction in program.instructions:
        unknown = next((what for p, what in _UNKNOWN.items() if re.match(p, instruction.name)), "")
        if unknown:
            raise EmulationError(
                f"it is not modelled: no source says {unknown}", instruction.line, instruction.text
            )


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
