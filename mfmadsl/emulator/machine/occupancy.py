"""How many workgroups of a kernel a compute unit holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mfmadsl.emulator.text.registers import asked_scalar_registers, asked_vector_registers
from mfmadsl.error import ArgumentError
from mfmadsl.model import Architecture, assumed

if TYPE_CHECKING:
    from mfmadsl.emulator.machine.launch import Launch


@dataclass(frozen=True)
class Occupancy:
    """How many workgroups of a kernel a compute unit holds, and what keeps it from more.

    `waves_per_simd` are those of the SIMD that has most of them.
    """

    waves_per_simd: int
    groups: int
    limit: str


def occupancy(
    chip: Architecture, vector: int, lds_bytes: int, waves_per_group: int, scalar: int = 0
) -> Occupancy:
    """Of a kernel that asks for so many registers, bytes of LDS, and waves a workgroup.

    `vector` counts both kinds where they share a file, and the larger one elsewhere. Waves go to
    the SIMDs in turn, so that a workgroup may have more waves on one than on another.

    Raises ArgumentError if not one workgroup fits.
    """
    waves = {
        "registers": chip.simd_registers // chip.granted(vector),
        "scalar registers": _waves_by_scalars(chip, scalar),
        "waves": chip.waves_per_simd,
    }
    groups = {name: chip.simds * count // waves_per_group for name, count in waves.items()}
    if lds_bytes:
        granules = -(-lds_bytes // chip.lds_granule) * chip.lds_granule
        groups["LDS"] = chip.lds_bytes // granules
    if waves_per_group > 1:
        groups["barriers"] = chip.groups_with_barriers
    resident = min(groups.values())
    limits = [name for name in _LIMITS if groups.get(name) == resident]
    if not resident:
        raise ArgumentError(
            f"a workgroup of {waves_per_group} waves, {vector} vector registers and {lds_bytes} "
            f"bytes of LDS does not fit on a compute unit of {chip.name}: too much of "
            f"{limits[0]}"
        )
    return Occupancy(-(-resident * waves_per_group // chip.simds), resident, limits[0])


def occupancy_of(launch: Launch) -> Occupancy:
    """Of a launch on its chip. Raises ArgumentError if not one workgroup fits."""
    program = launch.program
    chip = assumed(program.arch)
    vector = asked_vector_registers(program.directives, program.registers, chip.name)
    scalar = asked_scalar_registers(program.directives)
    return occupancy(chip, vector, launch.lds_bytes, launch.waves_per_group, scalar)


def resident_workgroups(launch: Launch) -> int:
    """How many workgroups of a launch the largest product of its chip holds at once.

    Raises ArgumentError if not one fits.
    """
    return assumed(launch.program.arch).compute_units * occupancy_of(launch).groups


# Which of equal ones is named: first what no kernel can change, and LDS before the registers that
# LLVM asks for because of it.
_LIMITS = ("waves", "barriers", "LDS", "registers", "scalar registers")


def _waves_by_scalars(chip: Architecture, count: int) -> int:
    """Waves of a SIMD that so many leave room for."""
    *_, (_, least) = chip.waves_by_scalars
    return next((waves for most, waves in chip.waves_by_scalars if count <= most), least)
