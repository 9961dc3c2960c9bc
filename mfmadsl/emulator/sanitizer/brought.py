"""What lanes bring to the pieces of memory that they store to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.memory import ByteStore
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.operand import Register


@dataclass(frozen=True)
class Brought:
    """Registers of the lanes of a mask, on their way to a store, of which a lane's part number
    `number` has `piece` bytes."""

    waves: Waves
    mask: Mask | None
    store: ByteStore
    source: Register
    width: Width
    piece: int
    number: int

    def as_there(self, pieces: npt.NDArray[np.int64]) -> Mask:
        """Whether what each lane brings to a piece is there already."""
        places = pieces[:, None] * self.piece + np.arange(self.piece)
        there = self.store.load_narrow(places, 1).astype(np.uint8)
        same: Mask = (there == self.content()).all(axis=1)
        return same

    def beaten(self, pieces: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
        """Lanes, by their places, that bring something else to a piece than the last one that
        stores there, and that one."""
        last = np.zeros(len(pieces), np.int64)
        _, inverse = np.unique(pieces, return_inverse=True)
        last[inverse] = np.arange(len(pieces))
        content = self.content()
        differ = (content != content[last[inverse]]).any(axis=1)
        return [(int(lane), int(last[inverse[lane]])) for lane in np.flatnonzero(differ)]

    def content(self) -> npt.NDArray[np.uint8]:
        """Of each lane the bytes of its piece."""
        file = self.waves.vector if self.source.bank == "v" else self.waves.accumulation
        words = file[self.source.index : self.source.index + self.width.registers]
        flat = words.reshape(len(words), -1) if self.mask is None else words[:, self.mask]
        stored = np.ascontiguousarray(flat.T).view(np.uint8)
        first = self.number * self.piece + (2 if self.width.half == "hi" else 0)
        return stored[:, first : first + self.piece]
