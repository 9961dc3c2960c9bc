"""Waves that wait in a loop: they come back to a place as they were when they last stood there.

What a wave does follows from its registers and from memory. One that is back in the same state goes
round for ever, unless another wave changes what it reads.
"""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.executor import OFTEN
from mfmadsl.emulator.machine.wave import LANES, Waves


class Recurrence:
    """The states in which waves of a portion were seen, each at one place."""

    def __init__(self, waves: Waves) -> None:
        self._place = np.full(waves.count, -1)
        self._told = np.zeros(waves.count, np.bool_)
        # The state of each wave: as large as the register files, and so made when it is needed.
        self._scc = np.zeros_like(waves.scc)
        self._scalar = np.zeros((0, waves.count), np.uint32)
        self._vector = self._accumulation = np.zeros((0, waves.count, LANES), np.uint32)
        self._counter = 0  # the scalar register that told waves apart from what they were

    def find(self, waves: Waves) -> Mask:
        """Which of the waves are back in a state in which they were here; now and then, the states
        of the others are kept."""
        index = waves.index
        again: Mask = self._place[index] == waves.pc
        if again.any():
            again &= self._scc[index] == waves.scc
            again &= self._scalar[self._counter, index] == waves.scalar[self._counter]
            for number, (kept, now) in enumerate(zip(self._scalar, waves.scalar, strict=True)):
                if not again.any():  # mostly the counter that told it before
                    break
                again &= kept[index] == now
                self._counter = number
        if again.any():
            for kept, now in (
                (self._vector, waves.vector),
                (self._accumulation, waves.accumulation),
            ):
                again &= (kept[:, index] == now).all(axis=(0, 2))
        if waves.returns % OFTEN == 0:
            self._keep(waves, ~again)
        return again

    def may_find(self, waves: Waves) -> bool:
        """Whether some of the waves may be back, as far as their counter tells."""
        if not len(self._scalar):
            return False
        kept, index = self._scalar[self._counter], waves.index
        if len(index) < len(kept):  # else they are all, in their order
            kept = kept[index]
        same = kept == waves.scalar[self._counter]
        return bool(same.any()) and bool((same & (self._place[index] == waves.pc)).any())

    def first_time(self, waves: Waves) -> bool:
        """Whether one of these waves was not yet told to be in the state that it is in."""
        first = not self._told[waves.index].all()
        self._told[waves.index] = True
        return first

    def _keep(self, waves: Waves, chosen: Mask) -> None:
        if not len(self._scalar):
            count = len(self._place)
            self._scalar = np.zeros((len(waves.scalar), count), np.uint32)
            self._vector, self._accumulation = (
                np.zeros((len(file), count, LANES), np.uint32)
                for file in (waves.vector, waves.accumulation)
            )
        index = waves.index[chosen]
        self._place[index], self._told[index] = waves.pc, False
        self._scc[index] = waves.scc[chosen]
        self._scalar[:, index] = waves.scalar[:, chosen]
        self._vector[:, index] = waves.vector[:, chosen]
        self._accumulation[:, index] = waves.accumulation[:, chosen]
