"""How far an access to memory reaches, and what makes others see it.

Where a device has one L2, all stores reach it, and loads do with `glc`, or after the vector L1 has
been emptied. Where it has several, a store reaches the other ones with `sc1`, or when an L2 is
written back (`buffer_wbl2 sc1`), and loads see it with `sc1`, or after caches have been emptied
(`buffer_inv sc1`). Waves of a workgroup share a vector L1, which takes their accesses in order.

Source: LLVM's "User Guide for AMDGPU Backend", memory models of gfx6-gfx9, gfx90a and gfx942, not
in tgsplit mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import AssemblySymbol
from mfmadsl.model import Architecture

PLAIN, WORKGROUP, DEVICE = range(3)
"""Whose other accesses see one that waits for nothing else."""

_ACCESS = re.compile(r"(?:global|flat|buffer)_(load|store|atomic)_")


@dataclass(frozen=True)
class Coherence:
    """Of a chip, whose device has several L2 caches or one."""

    several: bool

    @classmethod
    def of(cls, chip: Architecture) -> Coherence:
        """That of a chip."""
        return cls(chip.dies > 1)

    def reach(self, instruction: Instruction) -> int:
        """Of a load, or of a store to one of several L2 caches, as its flags say."""
        flags = _flags(instruction)
        if not self.several:
            return DEVICE if "glc" in flags else PLAIN
        return DEVICE if "sc1" in flags else WORKGROUP if "sc0" in flags else PLAIN

    def store_reach(self, instruction: Instruction) -> int:
        """Of a store. One L2 takes any: that of an atomic variable looks no different."""
        return self.reach(instruction) if self.several else WORKGROUP

    def writes_back(self, instruction: Instruction) -> bool:
        """Whether what the L2 holds for itself becomes visible to others."""
        return instruction.name == "buffer_wbl2" and "sc1" in _flags(instruction)

    def invalidates(self, instruction: Instruction) -> bool:
        """Whether loads behind it see what others have made visible."""
        if self.several:
            return instruction.name == "buffer_inv" and "sc1" in _flags(instruction)
        return instruction.name in ("buffer_wbinvl1", "buffer_wbinvl1_vol")

    def looks(self, instructions: Iterable[Instruction]) -> bool:
        """Whether a program has accesses that may find out what other waves have done."""
        return any(
            (match[1] == "load" and self.reach(each) > PLAIN)
            or (match[1] == "atomic" and bool({"sc0", "glc"} & _flags(each)))
            for each in instructions
            if (match := _ACCESS.match(each.name))
        )


def _flags(instruction: Instruction) -> set[str]:
    """Its modifiers; the first one of an instruction without operands reads like one."""
    symbols = (o.name for o in instruction.operands if isinstance(o, AssemblySymbol))
    return {*instruction.modifiers, *symbols}
