"""Pipelined: the next keys and values come while this step's are multiplied.

What goes through the LDS in the middle of a step, as P did, is nothing that the passes understand;
a loop of copies, reads and products is.
"""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.attention.kernel import TILINGS, TurnedInRegisters, cut_of, scheduled
from examples.attention.registers import body_of
from examples.attention.size import Size


def schedule(size: Size, arch: str) -> Schedule:
    """The loop of the step before, with `mfmadsl.pipeline`."""
    cut = cut_of(size, TILINGS[arch], arch, kind=TurnedInRegisters)
    return scheduled(cut, body_of(pipelined=True))
