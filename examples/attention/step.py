"""What a step of the ladder is: a schedule of attention, and what it changes of the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm.s_tir import Schedule

import mfmadsl
from examples.attention.size import Size
from mfmadsl import Kernel


@dataclass(frozen=True)
class Step:
    """A step of the ladder on one chip; `change` says in a line what is new."""

    name: str
    change: str
    arch: str
    causal: bool
    schedule: Callable[[Size, str], Schedule]

    def kernel(self, size: Size) -> Kernel:
        """The machine code of an attention of that size, of one kernel or of several that follow
        each other. Raises ScheduleError where a limit of the chip is broken."""
        return mfmadsl.build(self.schedule(size, self.arch), self.arch)
