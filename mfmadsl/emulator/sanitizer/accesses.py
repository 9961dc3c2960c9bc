"""The lanes of an access to global memory, and who accessed a piece of it last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.native.fields import PAGE_BITS, REACH_BITS
from mfmadsl.emulator.sanitizer.knowledge import Ids
from mfmadsl.emulator.sanitizer.reserved import reserved
from mfmadsl.emulator.text.assembly import Instruction


@dataclass(frozen=True)
class Lanes:
    """The lanes of an access, one after the other: their waves, numbers, tickets, and up to which
    ticket their waves have waited."""

    waves: Waves
    instruction: Instruction
    mask: Mask | None
    ids: Ids
    numbers: Ids
    tickets: Ids
    done: Ids
    reach: int

    @classmethod
    def of(
        cls, waves: Waves, instruction: Instruction, mask: Mask | None, ids: Ids, tickets: Ids,
        done: Ids, reach: int,
    ) -> Lanes:  # fmt: skip
        """Those of `mask`, of waves with these numbers in the launch and tickets."""
        of_waves = (ids[:, None], np.arange(LANES), tickets[:, None], done[:, None])
        full = [np.broadcast_to(values, (waves.count, LANES)) for values in of_waves]
        flat = [(each if mask is None else each[mask]).reshape(-1) for each in full]
        by_lane = dict(zip(("ids", "numbers", "tickets", "done"), flat, strict=True))
        return cls(waves, instruction, mask, reach=reach, **by_lane)

    @property
    def marks(self) -> Ids:
        """Tickets with the reach."""
        return self.tickets << REACH_BITS | self.reach


class Accesses:
    """The last access to each piece: by whom, and its mark. 0 is none."""

    are_any = False

    def __init__(self, pieces: int, kind: type[np.signedinteger[Any]]) -> None:
        # Native code takes pairs. Pages say where there are any.
        self._pairs = reserved(2 * pieces, kind).reshape(-1, 2)
        self._pages = np.zeros((pieces >> PAGE_BITS) + 2, np.uint8)

    @property
    def who(self) -> Any:
        """By whom."""
        return self._pairs[:, 0]

    @property
    def mark(self) -> Any:
        """The marks."""
        return self._pairs[:, 1]

    @property
    def address(self) -> int:
        """Where the pairs lie."""
        return int(self._pairs.ctypes.data)

    @property
    def pages_address(self) -> int:
        """Where the pages lie."""
        return int(self._pages.ctypes.data)

    def note(self, pieces: Ids, who: Ids, marks: Ids) -> None:
        """These are the last ones."""
        self.are_any = True
        self.who[pieces], self.mark[pieces] = who, marks
        self._pages[pieces >> PAGE_BITS] = 1

    def cut(self, times: int) -> None:
        """Make smaller pieces of each."""
        self._pairs, self._pages = self._pairs.repeat(times, axis=0), self._pages.repeat(times)
