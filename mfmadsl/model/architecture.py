"""The chips that have matrix cores, and the limits that a kernel must keep to."""

from __future__ import annotations

from dataclasses import dataclass

WAVE_SIZE = 64
"""Lanes in a wave. Every CDNA chip runs waves of 64 (CDNA3 ISA, section 2.1)."""


@dataclass(frozen=True)
class Architecture:
    """One chip, by LLVM's processor name.

    `lds_bytes` and `max_threads` bound one workgroup; `family` names the ISA manual.
    Sizes: LLVM AMDGPU backend guide (processors, LDS), CDNA ISA manuals, section 2.
    """

    name: str
    family: str
    lds_bytes: int
    max_threads: int = 1024


GFX908 = Architecture("gfx908", "CDNA1", lds_bytes=64 * 1024)
GFX90A = Architecture("gfx90a", "CDNA2", lds_bytes=64 * 1024)
GFX942 = Architecture("gfx942", "CDNA3", lds_bytes=64 * 1024)
GFX950 = Architecture("gfx950", "CDNA4", lds_bytes=160 * 1024)

ARCHITECTURES: dict[str, Architecture] = {a.name: a for a in (GFX908, GFX90A, GFX942, GFX950)}


def architecture(name: str) -> Architecture:
    """The chip called `name`; ValueError, listing those there are, if there is none."""
    try:
        return ARCHITECTURES[name]
    except KeyError:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"unknown architecture {name!r}: mfmadsl knows {known}") from None
