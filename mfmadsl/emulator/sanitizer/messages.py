"""The messages that lie in global memory: what the waves that wrote a word had known."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.coherence import PLAIN
from mfmadsl.emulator.sanitizer.accesses import Lanes
from mfmadsl.emulator.sanitizer.knowledge import Ids, Knowledge
from mfmadsl.emulator.sanitizer.reserved import reserved

_MOST = 1 << 20


class Messages:
    """For each piece of memory the number of its message; 0 is none."""

    def __init__(self, pieces: int, knowledge: Knowledge) -> None:
        self._numbers, self._knowledge = reserved(pieces, np.int32), knowledge

    @property
    def too_many(self) -> bool:
        """Whether there are more than are kept."""
        return self._knowledge.messages > _MOST

    def cut(self, times: int) -> None:
        """Make smaller pieces of each."""
        self._numbers = self._numbers.repeat(times)

    def send(self, lanes: Lanes, pieces: Ids) -> None:
        """Lanes store."""
        self._numbers[pieces] = self._sent(lanes) if lanes.reach > PLAIN else 0

    def _sent(self, lanes: Lanes) -> Ids:
        """The messages that lanes write."""
        ids, first, inverse = np.unique(lanes.ids, return_index=True, return_inverse=True)
        each = [
            self._knowledge.message(int(wave), int(lanes.tickets[at]), int(lanes.done[at]))
            for wave, at in zip(ids, first, strict=True)
        ]
        numbers: Ids = np.array(each, np.int64)[inverse.reshape(-1)]
        return numbers

    def learn(self, lanes: Lanes, pieces: Ids) -> None:
        """Lanes load, by accesses that see what others have made visible."""
        messages = self._numbers[pieces]
        if lanes.reach == PLAIN or not messages.any():
            return
        for wave, message, ticket in np.unique(
            np.stack([lanes.ids, messages.astype(np.int64), lanes.tickets]), axis=1
        ).T.tolist():
            self._knowledge.learn(wave, message, ticket)

    def known(self, ids: Ids, pieces: Ids) -> Mask:
        """Which waves have loaded what lies in pieces: it was written before then."""
        return self._knowledge.has_learned(ids, self._numbers[pieces].astype(np.int64))

    def chain(self, lanes: Lanes, pieces: Ids, returns: bool, wins: Mask | None) -> None:
        """Waves change words one after the other, each with the message of the one before.

        Of those that compare first, only some do; the others have looked.
        """
        sent = self._sent(lanes)
        order = np.lexsort((np.arange(len(pieces)), pieces))
        changing = order if wins is None else order[wins[order]]
        known: dict[int, int] = {}
        for at in changing[_changes(pieces[changing], lanes.ids[changing])].tolist():
            piece, wave = int(pieces[at]), int(lanes.ids[at])
            before = known.get(piece, int(self._numbers[piece]))
            known[piece] = self._knowledge.chained(before, int(sent[at]))
            if returns:
                self._knowledge.learn(wave, before, int(lanes.tickets[at]))
                self._knowledge.has_read(wave, known[piece])
        self._numbers[list(known)] = list(known.values())
        if wins is not None and returns:
            lost = order[~wins[order]]
            for at in lost[_changes(pieces[lost], lanes.ids[lost])].tolist():
                message, ticket = self._numbers[pieces[at]], lanes.tickets[at]
                self._knowledge.learn(int(lanes.ids[at]), int(message), int(ticket))


def _changes(pieces: Ids, ids: Ids) -> Mask:
    """Where another piece or wave begins."""
    first = np.ones(len(pieces), np.bool_)
    first[1:] = (pieces[1:] != pieces[:-1]) | (ids[1:] != ids[:-1])
    return first
