"""The vector L1 cache of a compute unit: which lines its waves have loaded not long ago.

All of its lines may hold any line of memory, and a new one takes the place of the one that was used
least lately. Chips divide theirs into sets, which may throw a line out earlier. Stores go through
to the L2, and change of the cache nothing but their bytes (AMD, "CDNA 3" white paper: a
write-through cache; LLVM, "Memory Model gfx942": what bypasses it).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model import Architecture

Policy = Literal["keep", "stream", "bypass"]
"""How a load uses the cache: it keeps there what it fetches, or does not, or asks the L2 always."""


def policy_of(instruction: Instruction) -> Policy:
    """How an instruction uses the cache, by the bits that say who else may see its memory."""
    bits = instruction.modifiers
    if "glc" in bits or "sc1" in bits:
        return "bypass"
    return "stream" if "nt" in bits else "keep"


def clears_cache(instruction: Instruction) -> bool:
    """Whether an instruction makes the cache forget all lines."""
    return instruction.name.startswith(("buffer_inv", "buffer_wbinvl1"))


def writes_back(instruction: Instruction) -> bool:
    """Whether an instruction has the L2 write what it holds to memory; `vmcnt` counts it."""
    return instruction.name.startswith("buffer_wbl2")


class VectorCache:
    """The lines of a vector L1 cache, and when each of them is there."""

    def __init__(self, chip: Architecture) -> None:
        self._chip = chip
        self._most = chip.l1_bytes // chip.line_bytes
        self._lines: OrderedDict[int, int] = OrderedDict()

    def clear(self) -> None:
        """Forget all lines."""
        self._lines.clear()

    def copy(self) -> VectorCache:
        """Another one that holds the same."""
        other = VectorCache(self._chip)
        other._lines = self._lines.copy()
        return other

    def missing(self, lines: Sequence[int], policy: Policy) -> int:
        """How many of the lines come from the L2; one that is on its way is not asked for again."""
        if policy == "bypass":
            return len(lines)
        return sum(line not in self._lines for line in lines)

    def load(self, lines: Sequence[int], policy: Policy, sent: int, fetched: int) -> int:
        """When lines that are asked for at some time are there, where those that are missing have
        been fetched at another."""
        if policy == "bypass":
            return fetched
        held, ready = self._lines, sent + self._chip.l1_latency
        for line in lines:
            there = held.get(line)
            if there is None:
                ready = max(ready, fetched)
                if policy == "keep":
                    held[line] = fetched
                    if len(held) > self._most:
                        held.popitem(last=False)
            else:
                held.move_to_end(line)
                ready = max(ready, there)
        return ready
