"""What a compute unit has, and how long its parts take.

Clock cycles unless said otherwise. Sources, by letter:

A: the CDNA ISA manuals (MI100, MI200, MI300, CDNA4), chapters 2 and 11.
B: LLVM 22, AMDGPU subtarget and scheduling model (registers, their granules, waves).
C: AMD, "Performance model" of ROCm Compute Profiler: LDS, vector L1 cache, pipelines.
D: AMD, "CDNA 3 Architecture" and "CDNA 4 Architecture" white papers.
E: AMD's analytical model of MI300X: LDS 48, L1 hit 144, L2 hit 254 cycles.
F: HipKittens (arXiv 2511.08083), measured lane phases of LDS instructions on MI355X.
G: AMD, "Avoiding LDS Bank Conflicts on AMD GPUs" (ROCm blogs, 2025), for MI300X.
"""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.error import ArgumentError

SLOT = 4
"""Cycles between two turns of a SIMD to issue (A, C): a wave issues once in so many at most."""


@dataclass(frozen=True)
class Chip:
    """One compute unit. `memory_latency` is that of a hit in L2, or beyond it, by name."""

    arch: str
    simds: int = 4  # A
    compute_units: int = 304  # D: of the largest product; of one die, where each is a device
    waves_per_simd: int = 8  # B
    groups_of_waves: int = 16  # B: workgroups of several waves, each of which takes a barrier
    registers: int = 512  # B: of one lane of a SIMD, for all of its waves (gfx908: of each kind)
    register_granule: int = 8  # B
    lds_bytes: int = 65536  # A
    lds_granule: int = 512  # B
    lds_latency: int = 64  # E: 48 beyond the transfer of the data itself
    banks: int = 32  # G: of four bytes, each once a cycle
    read_banks: int = 32
    line_bytes: int = 128  # C: of the vector L1 cache
    l1_bytes_per_cycle: int = 64  # C
    l1_latency: int = 144  # E
    l2_latency: int = 254  # E
    scalar_latency: int = 64  # B, E: a hit in the scalar cache

    def granted(self, vector: int) -> int:
        """The vector registers a lane that a wave is given if it asks for so many."""
        granule = self.register_granule
        return max(granule, -(-vector // granule) * granule)


_CHIPS = {
    "gfx908": Chip(
        "gfx908", compute_units=120, waves_per_simd=10, registers=256, register_granule=4,
        line_bytes=64,
    ),
    "gfx90a": Chip("gfx90a", compute_units=110, line_bytes=64),
    "gfx942": Chip("gfx942"),
    # D: the LDS is larger and is read twice as fast; F: reads see 64 banks.
    "gfx950": Chip("gfx950", compute_units=256, lds_bytes=163840, lds_granule=1280, read_banks=64),
}  # fmt: skip


def chip_of(arch: str) -> Chip:
    """Raises ArgumentError for a chip that is not known."""
    if arch not in _CHIPS:
        raise ArgumentError(f"no profile of `{arch}`, but of: {', '.join(_CHIPS)}")
    return _CHIPS[arch]


@dataclass(frozen=True)
class Occupancy:
    """How many workgroups of a kernel a compute unit holds, and what keeps it from more.

    `waves_per_simd` are those of the SIMD that has most of them.
    """

    waves_per_simd: int
    groups: int
    limit: str


def occupancy(
    chip: Chip, vector: int, lds_bytes: int, waves_per_group: int, scalar: int = 0
) -> Occupancy:
    """How many workgroups a unit holds of a kernel that asks for so many registers and so much LDS.

    `vector` counts both kinds where they share a file, and the larger one elsewhere. Waves go to
    the SIMDs in turn, so that a workgroup may have more waves on one than on another.

    Raises ValueError if not one workgroup fits.
    """
    waves = {
        "registers": chip.registers // chip.granted(vector),
        "scalar registers": _waves_by_scalars(scalar),
        "waves": chip.waves_per_simd,
    }
    groups = {name: chip.simds * count // waves_per_group for name, count in waves.items()}
    if lds_bytes:
        granules = -(-lds_bytes // chip.lds_granule) * chip.lds_granule
        groups["LDS"] = chip.lds_bytes // granules
    if waves_per_group > 1:
        groups["barriers"] = chip.groups_of_waves
    resident = min(groups.values())
    limits = [name for name in _LIMITS if groups.get(name) == resident]
    if not resident:
        raise ArgumentError(
            f"a workgroup of {waves_per_group} waves, {vector} vector registers and {lds_bytes} "
            f"bytes of LDS does not fit on a compute unit of {chip.arch}: too much of "
            f"{limits[0]}"
        )
    return Occupancy(-(-resident * waves_per_group // chip.simds), resident, limits[0])


# Which of equal ones is named: first what no kernel can change, and LDS before the registers that
# LLVM asks for because of it.
_LIMITS = ("waves", "barriers", "LDS", "registers", "scalar registers")


def _waves_by_scalars(count: int) -> int:
    """Waves of a SIMD that so many leave room for (B: getOccupancyWithNumSGPRs)."""
    return next((waves for most, waves in ((80, 10), (88, 9), (100, 8)) if count <= most), 7)
