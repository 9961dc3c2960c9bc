"""Waves that meet in global memory without anything between that orders them.

For each piece of memory the last write is kept, and the last reads of two waves, with their tickets
(see `knowledge`). An access of another wave must come behind them, by barriers or by messages that
reach it.
"""

from __future__ import annotations

from collections import deque
from math import prod
from typing import NamedTuple

import numpy as np

from mfmadsl.emulator.error import EarlierAccess
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.coherence import DEVICE, PLAIN, WORKGROUP, Coherence
from mfmadsl.emulator.machine.memory import Addresses
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.native.fields import REACH_BITS, Field
from mfmadsl.emulator.native.stretch import Access
from mfmadsl.emulator.sanitizer.accesses import Accesses, Lanes
from mfmadsl.emulator.sanitizer.brought import Brought
from mfmadsl.emulator.sanitizer.knowledge import Ids, Knowledge
from mfmadsl.emulator.sanitizer.messages import Messages
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register

_REMEMBERED = 4096  # accesses, of which a fault can name one
_FINE_BYTES = 1 << 26  # of memory, whose pieces are made smaller for a store that is not aligned
_MOST_WAVES = 1 << 12  # whose knowledge of one another is kept


class _Recent(NamedTuple):
    """Waves that accessed memory, with what they had issued by then, but for so many `more`."""

    instruction: Instruction
    ids: Ids
    issued: Ids
    more: int = 0

    @property
    def tickets(self) -> Ids:
        """Their tickets."""
        return self.issued + self.more


class GlobalRaces:
    """The accesses of all waves of a launch to global memory.

    `piece` is the smallest number of bytes that an instruction of the program stores there.
    """

    def __init__(self, waves: Waves, piece: int, coherence: Coherence, looks: bool) -> None:
        position = waves.position
        self.per_group, self._grid = position.waves_per_group, position.grid
        count = prod(position.grid) * self.per_group
        self.piece, self._coherence = piece, coherence
        self._bytes = waves.memory.end
        pieces = -(-self._bytes // piece)
        kind = np.int32 if count * LANES < 1 << 31 else np.int64
        self.is_narrow, self.version = kind is np.int32, 0
        # An atomic leaves what was written before it as unordered as it was.
        self._written, self._updated = Accesses(pieces, kind), Accesses(pieces, kind)
        self._read, self._read_before = Accesses(pieces, kind), Accesses(pieces, kind)
        self.knowledge = Knowledge(count, self.per_group, coherence.several)
        self._messages = Messages(pieces, self.knowledge) if looks else None
        self._between_groups = True
        if count > _MOST_WAVES:
            self._give_up()
        self._recent: deque[_Recent] = deque(maxlen=_REMEMBERED)

    def looks_at(self, access: Access) -> bool:
        """Whether native code can: messages it neither sends nor reads."""
        plain = access.reach == PLAIN and not access.stores
        return self.is_narrow and (self._messages is None or plain)

    @property
    def looks_at_all(self) -> tuple[bool, bool]:
        """What that depends on."""
        return self.is_narrow, self._messages is None

    def places(self) -> dict[Field, int]:
        """What native code looks at."""
        return {
            "memory_shift": self.piece.bit_length() - 1,
            "written": self._written.address,
            "updated": self._updated.address,
            "read": self._read.address,
            "read_before": self._read_before.address,
            "written_pages": self._written.pages_address,
            "updated_pages": self._updated.pages_address,
            "read_pages": self._read.pages_address,
            "read_before_pages": self._read_before.pages_address,
            "known": self.knowledge.passed.ctypes.data,
            "between_groups": int(self._between_groups),
        }

    def ran(self, instruction: Instruction, ids: Ids, issued: Ids, number: int) -> None:
        """Native code has looked at an access, which is the one of that number behind `issued`."""
        self._recent.append(_Recent(instruction, ids, issued, number))

    def wrote(self) -> None:
        """Native code has looked at stores."""
        self._written.are_any = True

    def load(self, lanes: Lanes, offsets: Addresses, size: int) -> None:
        """Lanes load: what others have written must come before."""
        self._remember(lanes)
        for pieces in self._loaded(offsets, size):
            self._after_write(lanes, pieces, "reads", None)
            self._note_read(lanes, pieces)
            if self._messages is not None:
                self._messages.learn(lanes, pieces)

    def store(self, lanes: Lanes, offsets: Addresses, source: Register, width: Width) -> None:
        """Lanes store: what others have written or read must come before."""
        self._remember(lanes)
        for i, pieces in enumerate(self._stored(offsets, width.size)):
            brought = Brought(
                lanes.waves, lanes.mask, lanes.waves.memory, source, width, self.piece, i
            )
            self._after_write(lanes, pieces, "writes", brought)
            self._after_reads(lanes, pieces)
            self._note_write(lanes, pieces, brought)
            if self._messages is not None:
                self._messages.send(lanes, pieces)

    def update(
        self, lanes: Lanes, offsets: Addresses, size: int, returns: bool,
        wins: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes read, combine and write at once. Of those that compare first, only some write."""
        who = lanes.ids * LANES + lanes.numbers + 1
        self._remember(lanes)
        for pieces in self._stored(offsets, size):
            self._after_write(lanes, pieces, "writes", None)
            self._after_reads(lanes, pieces)
            if wins is None:
                self._updated.note(pieces, who, lanes.marks)
            else:
                self._note_read(lanes, pieces)
                self._updated.note(pieces[wins], who[wins], lanes.marks[wins])
            if self._messages is not None:
                self._messages.chain(lanes, pieces, returns, wins)

    def _loaded(self, offsets: Addresses, size: int) -> list[Ids]:
        """The pieces that lanes load, one or more each: any byte of them counts."""
        flat = offsets.reshape(-1)
        first, last = flat // self.piece, (flat + size - 1) // self.piece
        most = int((last - first).max(initial=0)) + 1
        return [np.minimum(first + i, last) for i in range(most)]

    def _stored(self, offsets: Addresses, size: int) -> list[Ids]:
        """The pieces that lanes store, whole ones; of those that cannot be told, none."""
        flat = offsets.reshape(-1)
        off = flat % self.piece
        if off.any():
            if self._bytes > _FINE_BYTES:
                return []
            self._cut(int(np.gcd.reduce(off, initial=self.piece)))
        return [flat // self.piece + i for i in range(size // self.piece)]

    def _cut(self, piece: int) -> None:
        """Keep smaller pieces from here on, each with what its whole went through."""
        times, self.piece = self.piece // piece, piece
        self.version += 1
        for each in (self._written, self._updated, self._read, self._read_before):
            each.cut(times)
        if self._messages is not None:
            self._messages.cut(times)

    def _give_up(self) -> None:
        """Look no longer at workgroups that look at what others do: that would take too much."""
        if self._messages is not None:
            self._messages, self._between_groups = None, False
            self.version += 1

    def _remember(self, lanes: Lanes) -> None:
        if self._messages is not None and self._messages.too_many:
            self._give_up()
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
            late = self._late(lanes, others, mark, relies, stored=True, loads=verb == "reads")
            if brought is not None and late.any():
                # Of two that write the same, it does not matter which is the last.
                late &= ~brought.as_there(pieces)
            if late.any() and verb == "writes" and self._messages is not None:
                late[late] = ~self._messages.known(lanes.ids[late], pieces[late])
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
            late = self._late(lanes, others, mark, relies=False, stored=False, loads=True)
            if late.any():
                at = int(np.argmax(late))
                self._tell(lanes, at, pieces, "writes", "read", int(others[at]), int(mark[at]),
                           relies=False)  # fmt: skip
                return

    def _late(
        self, lanes: Lanes, others: Array, mark: Array, relies: bool, stored: bool, loads: bool
    ) -> Mask:
        """Which of the lanes' accesses another wave's are not known to come before. Of the two one
        `loads`, or both write; the other wave's has `stored`."""
        late: Mask = (mark > 0) & (others != lanes.ids)
        if not late.any():
            return late
        same = others // self.per_group == lanes.ids // self.per_group
        if not self._between_groups:
            late &= same
        reach = mark & (1 << REACH_BITS) - 1
        least, most = np.minimum(reach, lanes.reach), np.maximum(reach, lanes.reach)
        if self._coherence.several:
            late &= least < np.where(same, WORKGROUP, DEVICE)
        else:  # any store may be that of an atomic variable, if who reads it knows of that
            late &= (least < WORKGROUP) | (most < DEVICE) & ~(same & loads)
        if late.any():
            visible = self._visible(reach[late], stored)
            late[late] = ~self.knowledge.before(
                lanes.ids[late], others[late], mark[late] >> REACH_BITS, visible, relies
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

    # Faults.

    def writer(self, offset: int) -> str:
        """Who has written last at an offset, or that nobody has."""
        piece = offset // self.piece
        for writes in (self._updated, self._written):
            if mark := int(writes.mark[piece]):
                wave = (int(writes.who[piece]) - 1) // LANES
                found = self._earlier(wave, mark >> REACH_BITS)
                where = f" in line {found.line}" if found else ""
                return f", written by {self._name(wave, -1)}{where}"
        return ", which nobody has written"

    def _tell(
        self, lanes: Lanes, at: int, pieces: Ids, verb: str, did: str, other: int, mark: int,
        relies: bool,
    ) -> None:  # fmt: skip
        ticket, reach = mark >> REACH_BITS, mark & (1 << REACH_BITS) - 1
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
        if self.knowledge.told(me, other, ticket):
            return self._unwaited(other, ticket, visible)
        return "with nothing between that orders them"

    def _unwaited(self, other: int, ticket: int, visible: bool) -> str:
        """What is missing where a flag was set before the access was waited for."""
        if visible:
            return "before a flag: there it needs `s_waitcnt vmcnt(0)` before the flag"
        if self.knowledge.wrote_back(other, ticket):
            return (
                "before a flag: there it needs `s_waitcnt vmcnt(0)` between `buffer_wbl2 sc1` and "
                "the flag"
            )
        return "before a flag: there it needs `buffer_wbl2 sc1` and a wait before the flag"

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
