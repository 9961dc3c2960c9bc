"""The chips that have matrix cores, and the limits that a kernel must keep to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mfmadsl.argument import check_type, described
from mfmadsl.error import ArgumentError

WAVE_SIZE = 64
"""Lanes in a wave. Every CDNA chip runs waves of 64 (CDNA3 ISA, section 2.1)."""


@dataclass(frozen=True)
class Architecture:
    """One chip, by LLVM's processor name.

    `lds_bytes` and `max_threads` bound one workgroup; `family` names the ISA manual. A wave has
    `registers` a lane, those of accumulation among them, if it has a SIMD to itself.
    `lds_read_banks`, of four bytes, are those that one cycle's 128-bit reads spread over.
    `compute_units` are those of the largest product (of one die, where each is a device), on
    `dies` that have an L2 each. `wide_loads_to_lds`: loads of 16 bytes a lane that go into the LDS,
    past the registers. `separate_files`: registers for sums are a file of their own, which only
    matrix instructions and moves reach.
    Sizes: LLVM AMDGPU backend guide (processors, LDS, registers), CDNA ISA manuals, section 2,
    CDNA white papers (compute units, dies).
    """

    name: str
    family: str
    lds_bytes: int
    compute_units: int
    max_threads: int = 1024
    registers: int = 512
    dies: int = 1
    lds_read_banks: int = 32
    wide_loads_to_lds: bool = False
    separate_files: bool = False


GFX908 = Architecture(
    "gfx908", "CDNA1", lds_bytes=64 * 1024, compute_units=120, separate_files=True
)
GFX90A = Architecture("gfx90a", "CDNA2", lds_bytes=64 * 1024, compute_units=110)
GFX942 = Architecture("gfx942", "CDNA3", lds_bytes=64 * 1024, compute_units=304, dies=8)
GFX950 = Architecture(
    "gfx950", "CDNA4", lds_bytes=160 * 1024, compute_units=256, dies=8, lds_read_banks=64,
    wide_loads_to_lds=True,
)  # fmt: skip

# LLVM AMDGPU backend guide, processors: GFX10, 11 and 12 are RDNA, of which 10 has no WMMA.
_RDNA = re.compile(r"gfx1[12]\d\d")
_GCN = re.compile(r"gfx([678]\d\d|90[0-79c]|10\d\d)")

ARCHITECTURES: dict[str, Architecture] = {a.name: a for a in (GFX908, GFX90A, GFX942, GFX950)}


def architecture(name: str) -> Architecture:
    """The chip called `name`; ArgumentError, listing those there are, if there is none."""
    check_type("arch", name, str, "a chip's name such as 'gfx942'")
    if name not in ARCHITECTURES:
        raise ArgumentError(f"arch: {unknown_chip(name)}")
    return ARCHITECTURES[name]


def unknown_chip(name: str) -> str:
    """Why there is no chip called `name`, and which there are."""
    known = ", ".join(f"{a.name} ({a.family})" for a in ARCHITECTURES.values())
    if _RDNA.fullmatch(name):
        why = f"{described(name)} is an RDNA chip, which has WMMA instructions instead of MFMA"
    elif _GCN.fullmatch(name):
        why = f"{described(name)} has no matrix cores"
    else:
        why = f"unknown chip {described(name)}"
    return f"{why}: mfmadsl knows {known}"
