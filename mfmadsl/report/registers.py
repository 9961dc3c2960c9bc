"""What a kernel takes of the registers, in the same words wherever it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.emulator.text.registers import Registers


def registers_json(registers: Registers) -> dict[str, Any]:
    """Counts for one lane, scalar ones for a wave; `scratch_bytes` for a lane."""
    return {
        "registers": {
            "vector": registers.vector,
            "accumulation": registers.accumulation,
            "scalar": registers.scalar,
        },
        "spills": registers.spilled,
        "scratch_bytes": registers.scratch_bytes,
    }


def registers_line(registers: Registers) -> str:
    """The registers of a kernel in one line, for people."""
    return (
        f"{registers.vector} vector, {registers.accumulation} of accumulation, "
        f"{registers.scalar} scalar, {registers.spilled} spilled"
    )
