"""The chips that have matrix cores: a record of each, and nothing of them anywhere else.

What each field means, in what unit it is and where it is from, `Architecture` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from mfmadsl.model.architecture import Architecture
from mfmadsl.model.wait import WaitCounter

CDNA = Architecture(
    name="",
    family="",
    elf_machine=0,
    instructions_of="",
    wave_size=64,
    max_threads=1024,
    simds=4,
    waves_per_simd=8,
    groups_with_barriers=16,
    compute_units=304,
    dies=1,
    issue_slot=4,
    wide_slots=1,
    transcendental_slots=4,
    packs_coordinates=True,
    architected_scratch=False,
    registers=512,
    simd_registers=512,
    register_granule=8,
    separate_files=False,
    even_tuples=True,
    accumulation_granule=4,
    waves_by_scalars=((80, 10), (88, 9), (100, 8), (102, 7)),
    lds_bytes=64 * 1024,
    lds_granule=512,
    lds_latency=64,
    lds_banks=32,
    lds_read_banks=32,
    lds_bytes_per_cycle=128,
    lds_queue=8,
    lds_store_bytes=64,
    line_bytes=128,
    l1_bytes=32 * 1024,
    l1_bytes_per_cycle=64,
    l1_latency=144,
    memory_queue=12,
    l2_bytes_per_cycle=64,
    l2_latency=254,
    scalar_latency=64,
    wide_loads_to_lds=False,
    transposing_reads=False,
    swaps_halves=False,
    wait_counters=(
        WaitCounter("vmcnt", ((0, 4), (14, 2))),
        WaitCounter("expcnt", ((4, 3),)),
        WaitCounter("lgkmcnt", ((8, 4),)),
    ),
    rounds_to_bfloat=False,
    formats=(),
    negates=False,
    flushes_halves=False,
)
"""What the chips of the CDNA family share, each of which says in what it differs."""

GFX908 = replace(
    CDNA,
    name="gfx908",
    family="CDNA1",
    elf_machine=0x30,
    compute_units=120,
    wide_slots=2,
    waves_per_simd=10,
    simd_registers=256,
    register_granule=4,
    separate_files=True,
    even_tuples=False,
    packs_coordinates=False,
    line_bytes=64,
    l1_bytes=16 * 1024,
)
GFX90A = replace(
    CDNA,
    name="gfx90a",
    family="CDNA2",
    elf_machine=0x3F,
    compute_units=110,
    line_bytes=64,
    l1_bytes=16 * 1024,
    flushes_halves=True,
)
GFX942 = replace(
    CDNA,
    name="gfx942",
    family="CDNA3",
    elf_machine=0x4C,
    architected_scratch=True,
    dies=8,
    formats=("xf32", "fnuz", "index"),
    negates=True,
)
GFX950 = replace(
    GFX942,
    name="gfx950",
    family="CDNA4",
    elf_machine=0x4F,
    compute_units=256,
    transcendental_slots=2,
    lds_bytes=160 * 1024,
    lds_granule=1280,
    lds_read_banks=64,
    wide_loads_to_lds=True,
    transposing_reads=True,
    swaps_halves=True,
    rounds_to_bfloat=True,
    formats=("ocp", "mx", "index"),
)

ARCHITECTURES: dict[str, Architecture] = {a.name: a for a in (GFX908, GFX90A, GFX942, GFX950)}

DEFAULT_ARCH = GFX942.name
"""The chip that kernels are made for where nobody says which."""

# LLVM AMDGPU backend guide, processors: GFX10, 11 and 12 are RDNA, of which 10 has no WMMA.
RDNA = re.compile(r"gfx1[12]\d\d")
WITHOUT_MATRICES = re.compile(r"gfx([678]\d\d|90[0-79c]|10\d\d)")

# What text for a chip that is not known, or that names none, is read as: it has the most of what
# any has, so that nothing is refused for being too much, and no matrix instructions.
_UNKNOWN = replace(
    CDNA,
    even_tuples=False,
    lds_bytes=max(a.lds_bytes for a in ARCHITECTURES.values()),
    registers=max(a.registers for a in ARCHITECTURES.values()),
)


def assumed(name: str) -> Architecture:
    """The chip called `name`, and for one that is not known what the emulator takes it for."""
    return ARCHITECTURES.get(name) or replace(_UNKNOWN, name=name)


def with_followers(chips: Iterable[str]) -> tuple[str, ...]:
    """The chips, and those that have the instructions of one of them."""
    named = tuple(chips)
    followers = (a.name for a in ARCHITECTURES.values() if a.instructions_of in named)
    return (*named, *(name for name in followers if name not in named))
