"""What `build` returns: a kernel as text and bytes, and all that a launch needs to know."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """One kernel argument: a dense row-major array in global memory."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Registers:
    """What one wave takes of the register files, by the compiler's own account.

    `scratch_bytes` is the memory that each lane needs besides, for spilled registers and for
    arrays that found no place in them.
    """

    vector: int
    accumulation: int
    scalar: int
    spilled: int
    scratch_bytes: int


@dataclass(frozen=True)
class Kernel:
    """Machine code for one chip.

    `arguments` stand in the order of the kernel's parameters, `grid` and `block` are (x, y, z),
    `lds_bytes` is what one workgroup takes of the LDS. `code_object` is None where no linker was
    found.
    """

    symbol: str
    arch: str
    llvm_ir: str
    assembly: str
    code_object: bytes | None
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    registers: Registers


def registers_of(assembly: str) -> Registers:
    """Register counts from the metadata at the end of LLVM's assembly text."""
    agprs = _metadata(assembly, "agpr_count")
    return Registers(
        # On gfx90a and newer, vgpr_count covers both halves of the unified file.
        vector=_metadata(assembly, "vgpr_count"),
        accumulation=agprs,
        scalar=_metadata(assembly, "sgpr_count"),
        spilled=_metadata(assembly, "vgpr_spill_count") + _metadata(assembly, "sgpr_spill_count"),
        scratch_bytes=_metadata(assembly, "private_segment_fixed_size"),
    )


def _metadata(assembly: str, key: str) -> int:
    found = re.search(rf"\.{key}:\s+(\d+)", assembly)
    return int(found[1]) if found else 0
