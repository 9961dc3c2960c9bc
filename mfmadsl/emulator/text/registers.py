"""What a kernel takes of the register files, and what the hardware sets aside for it.

The two differ: LLVM asks in the kernel descriptor for more than a kernel uses, where the LDS keeps
other waves away in any case, and registers are given out in granules.

Source: LLVM's "User Guide for AMDGPU Backend", sections "Code Object Metadata" (`.vgpr_count` and
`.agpr_count`), "AMDHSA Kernel Assembler Directives" and "Kernel Descriptor".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mfmadsl.emulator.text.metadata import read_metadata
from mfmadsl.model import assumed


@dataclass(frozen=True)
class Registers:
    """What one wave uses of the register files, by the compiler's own account.

    `vector` counts those that v0, v1, ... name, `accumulation` those of a0, a1, ...; both for each
    lane. `spilled` are of either kind. `scratch_bytes` is the memory that each lane needs besides,
    for spilled registers and for arrays that found no place in them.
    """

    vector: int
    accumulation: int
    scalar: int
    spilled: int
    scratch_bytes: int


def registers_of(text: str, kernel: str) -> Registers:
    """What one kernel of an assembly text uses. Raises EmulationError for broken metadata."""
    return used_registers(text, kernel, read_metadata(text, kernel).counts, {})


def used_registers(
    text: str, kernel: str, counts: Mapping[str, int], directives: Mapping[str, int]
) -> Registers:
    """What a kernel uses: by LLVM's symbols, else by the metadata, else by the directives.

    Of gfx908 the metadata has the larger of two files, and of other chips the sum with the first
    rounded up to four, so that `vector` may be a little too large without the symbols, which LLVM
    writes since version 20. The directives say what the hardware is asked for.
    """
    accumulation = _symbol(text, kernel, "num_agpr")
    vector = _symbol(text, kernel, "num_vgpr")
    if accumulation is None:
        accumulation = counts.get("agpr_count")
    if vector is None and "vgpr_count" in counts:
        shared = 0 if separate_files(text) else accumulation or 0
        vector = counts["vgpr_count"] - shared
    asked, start = directives.get("next_free_vgpr", 0), directives.get("accum_offset", 0)
    if vector is None:
        vector = min(start, asked) if start else asked
        if accumulation is None and start:
            accumulation = max(0, asked - start)
    return Registers(
        vector=vector,
        accumulation=accumulation or 0,
        scalar=counts.get("sgpr_count", directives.get("next_free_sgpr", 0)),
        spilled=counts.get("vgpr_spill_count", 0) + counts.get("sgpr_spill_count", 0),
        scratch_bytes=counts.get(
            "private_segment_fixed_size", directives.get("private_segment_fixed_size", 0)
        ),
    )


def separate_files(text: str) -> bool:
    """Whether an assembly text is for a chip with a file for each kind of vector register."""
    return assumed(target_of(text)[0]).separate_files


def target_of(text: str) -> tuple[str, str]:
    """The chip that an assembly text is for and the features that it names, or nothing."""
    target = re.search(r'\.amdgcn_target\s+"[^"]*?(gfx\w+)([^"]*)"', text)
    return (target[1], target[2]) if target else ("", "")


def asked_vector_registers(directives: Mapping[str, int], registers: Registers, arch: str) -> int:
    """What the kernel descriptor asks for: of both kinds together, or of each of two files."""
    if "next_free_vgpr" in directives:
        return directives["next_free_vgpr"]
    vector, accumulation = registers.vector, registers.accumulation
    chip = assumed(arch)
    if chip.separate_files:
        return max(vector, accumulation)
    if not accumulation:
        return vector
    granule = chip.accumulation_granule
    return -(-vector // granule) * granule + accumulation


def asked_scalar_registers(directives: Mapping[str, int]) -> int:
    """What the descriptor asks for, with those that VCC, XNACK_MASK and FLAT_SCRATCH take."""
    extra = 0
    if directives.get("reserve_vcc", 1):
        extra = 2
    if directives.get("reserve_xnack_mask", 1):
        extra = 4
    if directives.get("reserve_flat_scratch", 1):
        extra = 6  # LLVM, AMDGPUBaseInfo: getNumExtraSGPRs
    return directives.get("next_free_sgpr", 0) + extra


def _symbol(text: str, kernel: str, name: str) -> int | None:
    """The value of `.set KERNEL.NAME`; None where it is none, or an expression of others."""
    found = re.search(rf"^\s*\.set {re.escape(kernel)}\.{name}, (\d+)\s*$", text, re.MULTILINE)
    return int(found[1]) if found else None
