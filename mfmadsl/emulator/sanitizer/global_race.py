"""Waves that meet in global memory without anything between that orders them.

For each piece of memory the last write is kept, and the last reads of two waves, with their tickets
(see `knowledge`). An access of another wave must come behind them, by barriers or by messages that
reach it.
"""

from __future__ import annotations

import mmap
from collections import deque
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EarlierAccess
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.memory import Addresses
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.sanitizer.brought import Brought
from mfmadsl.emulator.sanitizer.coherence import DEVICE, PLAIN, WORKGROUP, Coherence
from mfmadsl.emulator.sanitizer.knowledge import Ids, Knowledge
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register

_REMEMBERED = 4096  # accesses, of which a fault can name one
_MOST_WAVES = 1 << 12  # whose knowledge of one another is kept
_REACH_BITS = 2  # of a ticket, that say how far the access reaches by itself


class _Recent(NamedTuple):
    """Waves that accessed memory, with their tickets."""

    instruction: Instruction
    ids: Ids
    tickets: Ids


@dataclass(frozen=True)
class Lanes:
    """The lanes of an access, one after the other: their waves, numbers and tickets."""

    waves: Waves
    instruction: Instruction
    mask: Mask | None
    ids: Ids
    numbers: Ids
    tickets: Ids
    reach: int

    @classmethod
    def of(
        cls, waves: Waves, instruction: Instruction, mask: Mask | None, ids: Ids, tickets: Ids,
        reach: int,
    ) -> Lanes:  # fmt: skip
        """Those of `mask`, of waves with these numbers in the launch and tickets."""
        shape = (waves.count, LANES)
        each = [
            np.broadcast_to(values, shape)
            for values in (ids[:, None], np.arange(LANES), tickets[:, None])
        ]
        flat = [(v if mask is None else v[mask]).reshape(-1) for v in each]
        return cls(waves, instruction, mask, flat[0], flat[1], flat[2], reach)

    @property
    def marks(self) -> Ids:
        """Tickets with the reach."""
        return self.tickets << _REACH_BITS | self.reach


class _Accesses:
    """The last access to each piece: by whom, and its mark. 0 is none."""

    are_any = False

    def __init__(self, pieces: int, kind: type[np.signedinteger[Any]]) -> None:
        self.who, self.mark = _empty(pieces, kind), _empty(pieces, np.int32)

    def note(self, pieces: Ids, who: Ids, marks: Ids) -> None:
        """These are the last ones."""
        self.are_any = True
        self.who[pieces], self.mark[pieces] = who, marks

    def cut(self, times: int) -> None:
        """Make smaller pieces of each."""
        self.who, self.mark = self.who.repeat(times), self.mark.repeat(times)


def _empty(count: int, kind: type[np.signedinteger[Any]]) -> npt.NDArray[np.signedinteger[Any]]:
    """Zeros, which take no memory before they are written."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    size = count * np.dtype(kind).itemsize
    return np.frombuffer(mmap.mmap(-1, max(size, 8), flags), kind)


class GlobalRaces:
    """The accesses of all waves of a launch to global memory.

    `piece` is the smallest number of bytes that an instruction of the program stores there.
    """

    def __init__(self, waves: Waves, piece: int, coherence: Coherence, looks: bool) -> None:
        position = waves.position
        self.per_group, self._grid = position.waves_per_group, position.grid
        count = prod(position.grid) * self.per_group
        self.piece, self._coherence = piece, coherence
        pieces = waves.memory.size_in_bytes // piece
        kind = np.int32 if count * LANES < 1 << 31 else np.int64
        # An atomic leaves what was written before it as unordered as it was.
        self._written, self._updated = _Accesses(pieces, kind), _Accesses(pieces, kind)
        self._read, self._read_before = _Accesses(pieces, kind), _Accesses(pieces, kind)
        self.knowledge = Knowledge(count, self.per_group, coherence.several)
        # Of what waves find out of one another, too much would have to be kept of very many.
        self._between_groups = not looks or count <= _MOST_WAVES
        self._messages = _empty(pieces if looks and self._between_groups else 0, np.int32)
        self._looks = looks and self._between_groups
        self._recent: deque[_Recent] = deque(maxlen=_REMEMBERED)

    def load(self, lanes: Lanes, offsets: Addresses, size: int) -> None:
        """Lanes load: what others have written must come before."""
        first, count = self._pieces(offsets, size, stores=False)
        self._remember(lanes)
        for i in range(count):
            pieces = first + i
            self._after_write(lanes, pieces, "reads", None)
            self._note_read(lanes, pieces)
            if self._looks and lanes.reach > PLAIN:
                self._learn(lanes, self._messages[pieces])

    def store(
        self, lanes: Lanes, offsets: Addresses, source: Register, width: Width, done: Ids
    ) -> None:
        """Lanes store, of waves that have waited for `done`: what others have written or read must
        come before."""
        first, count = self._pieces(offsets, width.size, stores=True)
        self._remember(lanes)
        for i in range(count):
            pieces = first + i
            brought = Brought(
                lanes.waves, lanes.mask, lanes.waves.memory, source, width, self.piece, i
            )
            self._after_write(lanes, pieces, "writes", brought)
            self._after_reads(lanes, pieces)
            self._note_write(lanes, pieces, brought)
            if self._looks:
                sends = lanes.reach > PLAIN
                self._messages[pieces] = self._sent(lanes, done) if sends else 0

    def update(self, lanes: Lanes, offsets: Addresses, size: int, done: Ids, returns: bool) -> None:
        """Lanes read, combine and write at once."""
        first, count = self._pieces(offsets, size, stores=True)
        self._remember(lanes)
        for i in range(count):
            pieces = first + i
            self._after_write(lanes, pieces, "writes", None)
            self._after_reads(lanes, pieces)
            self._updated.note(pieces, lanes.ids * LANES + lanes.numbers + 1, lanes.marks)
            if self._looks:
                self._chain(lanes, pieces, self._sent(lanes, done), returns)

    def _pieces(self, offsets: Addresses, size: int, stores: bool) -> tuple[Ids, int]:
        flat = offsets.reshape(-1)
        off = flat % self.piece
        count = -(-size // self.piece)
        if ((off > 0) if stores else (off + size > count * self.piece)).any():
            self._cut(int(np.gcd.reduce(off, initial=self.piece)))
            return self._pieces(offsets, size, stores)
        return flat // self.piece, count

    def _cut(self, piece: int) -> None:
        """Keep smaller pieces from here on, each with what its whole went through."""
        times, self.piece = self.piece // piece, piece
        for each in (self._written, self._updated, self._read, self._read_before):
            each.cut(times)
        self._messages = self._messages.repeat(times)

    def _remember(self, lanes: Lanes) -> None:
        self._recent.append(_Recent(lanes.instruction, lanes.ids, lanes.tickets))

    # Checks.

    def _after_write(self, lanes: Lanes, pieces: Ids, verb: str, brought: Brought | None) -> None:
        """Tell a fault unless the last writes to each piece come before, plain and by atomics."""
        relies = verb == "reads" and lanes.reach < DEVICE
        for writes in (self._written, self._updated):
            if not writes.are_any:
                continue
            mark = writes.mark[pieces]
            if not mark.any():
                continue
            others = (writes.who[pieces] - 1) // LANES
            late = self._late(lanes, others, mark, relies, stored=True)
            if brought is not None and late.any():
                # Of two that write the same, it does not matter which is the last.
                late &= ~brought.as_there(pieces)
            if late.any():
                at = int(np.argmax(late))
                self._tell(lanes, at, pieces, verb, "wrote", int(others[at]), int(mark[at]), relies)
                return

    def _after_reads(self, lanes: Lanes, pieces: Ids) -> None:
        """Tell a fault unless the last reads of each piece come before."""
        for reads in (self._read, self._read_before):
            mark = reads.mark[pieces]
            if not mark.any():
                return
            others = reads.who[pieces] - 1
            late = self._late(lanes, others, mark, relies=False, stored=False)
            if late.any():
                at = int(np.argmax(late))
                self._tell(lanes, at, pieces, "writes", "read", int(others[at]), int(mark[at]),
                           relies=False)  # fmt: skip
                return

    def _late(self, lanes: Lanes, others: Array, mark: Array, relies: bool, stored: bool) -> Mask:
        """Which of the lanes' accesses another wave's are not known to come before."""
        late: Mask = (mark > 0) & (others != lanes.ids)
        if not late.any():
            return late
        same = others // self.per_group == lanes.ids // self.per_group
        if not self._between_groups:
            late &= same
        reach = mark & (1 << _REACH_BITS) - 1
        least, most = np.minimum(reach, lanes.reach), np.maximum(reach, lanes.reach)
        if self._coherence.several:
            late &= least < np.where(same, WORKGROUP, DEVICE)
        else:  # any store may be that of an atomic variable, if who reads it knows of that
            late &= (least < WORKGROUP) | (most < DEVICE)
        if late.any():
            visible = self._visible(reach[late], stored)
            late[late] = ~self.knowledge.before(
                lanes.ids[late], others[late], mark[late] >> _REACH_BITS, visible, relies
            )
        return late

    def _visible(self, reach: Array, stored: bool) -> Mask:
        if not stored or not self._coherence.several:
            return np.ones(reach.shape, np.bool_)
        visible: Mask = reach >= DEVICE
        return visible

    # Notes.

    def _note_read(self, lanes: Lanes, pieces: Ids) -> None:
        who, marks = lanes.ids + 1, lanes.marks
        before = self._read.who[pieces]
        another = (before > 0) & (before != who)
        if another.any():
            moved = pieces[another]
            self._read_before.note(moved, before[another], self._read.mark[moved])
        self._read.note(pieces, who, marks)

    def _note_write(self, lanes: Lanes, pieces: Ids, brought: Brought) -> None:
        who = lanes.ids * LANES + lanes.numbers + 1
        if lanes.reach == DEVICE:
            self._updated.note(pieces, who, lanes.marks)
            return
        self._written.note(pieces, who, lanes.marks)
        if (self._written.who[pieces] == who).all():
            return
        for at, last in brought.beaten(pieces)[:1]:
            same = lanes.ids[at] == lanes.ids[last]
            other = self._name(int(lanes.ids[last]), int(lanes.ids[at]))
            message = (
                f"writes {self._place(lanes, pieces, at)}, where "
                f"{f'lane {lanes.numbers[last]}' if same else other} writes another value at once"
            )
            self._fault(lanes, at, message, None)

    def _sent(self, lanes: Lanes, done: Ids) -> Ids:
        """The messages that lanes write."""
        numbers = np.zeros(lanes.ids.shape, np.int64)
        ids, first, inverse = np.unique(lanes.ids, return_index=True, return_inverse=True)
        each = [
            self.knowledge.message(int(wave), int(lanes.tickets[at]), int(done[at]))
            for wave, at in zip(ids, first, strict=True)
        ]
        numbers[:] = np.array(each, np.int64)[inverse.reshape(-1)]
        return numbers

    def _learn(self, lanes: Lanes, messages: Array) -> None:
        if not messages.any():
            return
        for wave, message, ticket in np.unique(
            np.stack([lanes.ids, messages.astype(np.int64), lanes.tickets]), axis=1
        ).T.tolist():
            self.knowledge.learn(wave, message, ticket)

    def _chain(self, lanes: Lanes, pieces: Ids, sent: Ids, returns: bool) -> None:
        """Waves that change words one after the other, each with the message of the one before."""
        order = np.lexsort((np.arange(len(pieces)), pieces))
        known: dict[int, int] = {}
        for at in order[_changes(pieces[order], lanes.ids[order])].tolist():
            piece, wave = int(pieces[at]), int(lanes.ids[at])
            before = known.get(piece, int(self._messages[piece]))
            if returns:
                self.knowledge.learn(wave, before, int(lanes.tickets[at]))
            known[piece] = self.knowledge.chained(before, int(sent[at]))
        self._messages[list(known)] = list(known.values())

    # Faults.

    def _tell(
        self, lanes: Lanes, at: int, pieces: Ids, verb: str, did: str, other: int, mark: int,
        relies: bool,
    ) -> None:  # fmt: skip
        ticket, reach = mark >> _REACH_BITS, mark & (1 << _REACH_BITS) - 1
        me = int(lanes.ids[at])
        who = self._name(other, me)
        why = self._why(me, other, ticket, bool(self._visible(np.array(reach), did == "wrote")),
                        relies)  # fmt: skip
        message = f"{verb} {self._place(lanes, pieces, at)}, which {who} {did} {why}"
        self._fault(lanes, at, message, self._earlier(other, ticket))

    def _why(self, me: int, other: int, ticket: int, visible: bool, relies: bool) -> str:
        """What is missing between two accesses."""

        def before(visible: bool, relies: bool) -> bool:
            return bool(
                self.knowledge.before(
                    np.array([me]), np.array([other]), np.array([ticket]), np.array([visible]),
                    relies,
                )[0]
            )  # fmt: skip

        several = self._coherence.several
        if relies and before(visible, relies=False):
            empties = "buffer_inv sc1" if several else "buffer_wbinvl1_vol"
            return (
                f"before a flag: it needs `{empties}` once the flag is loaded, or else may read "
                "what its cache holds"
            )
        if not visible and before(visible=True, relies=False):
            return "before a flag: there it needs `buffer_wbl2 sc1` and a wait before the flag"
        return "with nothing between that orders them"

    def _name(self, wave: int, me: int) -> str:
        group, number = divmod(wave, self.per_group)
        if group == me // self.per_group:
            return f"wave {number}"
        x, y, _ = self._grid
        return f"wave {number} of workgroup ({group % x}, {group // x % y}, {group // (x * y)})"

    def _place(self, lanes: Lanes, pieces: Ids, at: int) -> str:
        return lanes.waves.memory.describe(int(pieces[at]) * self.piece)

    def _fault(self, lanes: Lanes, at: int, message: str, earlier: EarlierAccess | None) -> None:
        wave, lane = (int(x) for x in np.argwhere(lanes.waves.lanes_of(lanes.mask))[at])
        lanes.waves.fault("race", message, wave, lane, earlier=earlier)

    def _earlier(self, wave: int, ticket: int) -> EarlierAccess | None:
        """The access of a wave that had the ticket, if it is remembered."""
        for each in reversed(self._recent):
            if ((each.ids == wave) & (each.tickets == ticket)).any():
                instruction = each.instruction
                return EarlierAccess(instruction.line, instruction.text, wave % self.per_group)
        return None


def _changes(pieces: Ids, ids: Ids) -> Mask:
    """Where another piece or wave begins."""
    first = np.ones(len(pieces), np.bool_)
    first[1:] = (pieces[1:] != pieces[:-1]) | (ids[1:] != ids[:-1])
    return first
