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
    waves_per_simd: int = 8  # B
    registers: int = 512  # B: of one lane of a SIMD, for all of its waves
    register_granule: int = 8  # B
    unified_registers: bool = True  # B: accumulation registers come out of the same
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


_CHIPS = {
    "gfx908": Chip(
        "gfx908", waves_per_simd=10, registers=256, register_granule=4, unified_registers=False,
        line_bytes=64,
    ),
    "gfx90a": Chip("gfx90a", line_bytes=64),
    "gfx942": Chip("gfx942"),
    # D: the LDS is larger and is read twice as fast; F: reads see 64 banks.
    "gfx950": Chip("gfx950", lds_bytes=163840, lds_granule=1280, read_banks=64),
}  # fmt: skip


def chip_of(arch: str) -> Chip:
    """Raises ArgumentError for a chip that is not known."""
    if arch not in _CHIPS:
        raise ArgumentError(f"no profile of `{arch}`, but of: {', '.join(_CHIPS)}")
    return _CHIPS[arch]


@dataclass(frozen=True)
class Occupancy:
    """How many waves of a kernel a SIMD holds, and what keeps it from more."""

    waves_per_simd: int
    groups: int
    limit: str


def occupancy(
    chip: Chip, vector: int, accumulation: int, lds_bytes: int, waves_per_group: int
) -> Occupancy:
    """Of a kernel with so many registers a lane, bytes of LDS, and waves a workgroup."""
    taken = vector + accumulation if chip.unified_registers else max(vector, accumulation)
    granule = chip.register_granule
    by_registers = chip.registers // max(granule, -(-taken // granule) * granule)
    waves = min(by_registers, chip.waves_per_simd)
    per_simd = -(-waves_per_group // chip.simds)
    groups = {
        "registers" if by_registers < chip.waves_per_simd else "waves": max(1, waves // per_simd)
    }
    if lds_bytes:
        granules = -(-lds_bytes // chip.lds_granule) * chip.lds_granule
        groups["LDS"] = max(1, chip.lds_bytes // granules)
    limit = min(groups, key=lambda name: groups[name])
    resident = groups[limit]
    return Occupancy(max(1, resident * waves_per_group // chip.simds), resident, limit)
