"""How long an instruction keeps what executes it, of what its row says (see `Operation.slots`)."""

from __future__ import annotations

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.model import CDNA

SLOT = CDNA.issue_slot
"""Cycles between two turns of a SIMD to issue, alike on all chips."""


def busy_cycles(operation: Operation) -> int:
    """Cycles that the unit of an instruction is busy with it."""
    return operation.slots * SLOT


def issue_cycles(operation: Operation) -> int:
    """Cycles until the wave goes on; a matrix core works while its wave does."""
    return SLOT if operation.unit == "matrix" else busy_cycles(operation)
