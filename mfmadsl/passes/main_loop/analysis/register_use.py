"""How freely a kernel takes registers."""

from __future__ import annotations

from enum import IntEnum

MANY_ITERATIONS = 4
"""For so many it is worth it to have the loads of two in flight."""

FEW_WORDS = 40
"""A thread has room for so many words twice."""

FROM_MEMORY = 3
"""Times as long loads are taken to come from memory as from the L2."""


class RegisterUse(IntEnum):
    """What is kept in registers. Only LLVM knows how many a kernel takes: one that spills is built
    again with the next of these."""

    TWO_AHEAD = 0
    """The loads of two iterations, where those of one are few."""

    ONE_AHEAD = 1
    """The loads of one iteration."""

    LEAN = 2
    """Addresses are computed anew where they are used, too."""
