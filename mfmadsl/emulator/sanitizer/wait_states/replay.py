"""Memory instructions that a chip may execute again, where it retries after a page fault (XNACK).

Those of one kind in a row form a clause, which starts over as a whole: none of them may overwrite
what one of them reads, and no store stands behind a load.

Source: LLVM 22, `checkSoftClauseHazards`; User Guide for AMDGPU Backend, "Target Features" (xnack).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, takewhile

from mfmadsl.emulator.sanitizer.wait_states.issued import Issued, Place, places

_VECTOR = ("global_", "flat_", "scratch_", "buffer_", "tbuffer_")
_STORES = ("store", "atomic")


@dataclass(frozen=True)
class Replayed:
    """Why a memory instruction must not stand in one clause with an earlier one."""

    reason: str
    first: Issued


def replayed(older: Iterable[Issued], step: Issued, reach: int) -> Replayed | None:
    """What is wrong if an instruction and those before it, the youngest first, start over.

    LLVM looks at so many of them as `reach` says.
    """
    kind = _kind(step)
    if not kind:
        return None
    clause = list(takewhile(lambda each: _kind(each) == kind, islice(older, reach)))
    loads = [each for each in clause if each.writes]
    if not loads:
        return None
    if any(word in step.name for word in _STORES):
        return Replayed("it would store again what may have changed", loads[0])
    together = [step, *clause]
    read = frozenset[Place]().union(*(places(each.reads, "vas") for each in together))
    for each in together:
        if places(each.writes, "vas") & read:
            return Replayed("addresses would be lost", each if each is not step else clause[0])
    return None


def _kind(step: Issued) -> str:
    """What a clause is made of: accesses of vectors, or scalar ones."""
    if step.instruction.name.startswith(_VECTOR):
        return "vector"
    return "scalar" if step.unit == "smem" else ""
