"""Waves that meet in LDS without a barrier between them.

For each piece of LDS the last write and the last read of every wave are kept with their tickets
(see `in_flight`). An access of another wave is ordered behind them only if they were complete, by
an `s_waitcnt`, when their wave passed the last barrier.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EarlierAccess
from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.memory import Addresses
from mfmadsl.emulator.machine.wait import LARGEST, Counter
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.native.fields import Field
from mfmadsl.emulator.sanitizer.brought import Brought
from mfmadsl.emulator.sanitizer.in_flight import InFlight
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register

Tickets = npt.NDArray[np.int64]

_APART = 16 * 17  # words, of as many lines of a cache
_EVERYWHERE = -1  # a mask of chunks
_LEAST_CHUNK = 4  # of 16 bytes: no access lies in more than two
_REMEMBERED = 4096  # instructions on the LDS, of which a fault can name one


@dataclass(frozen=True)
class LdsAccessKind:
    """What lanes do to LDS. One that `polls` looks until another wave has written. `through` is the
    counter that waits for it."""

    writes: bool
    atomic: bool = False
    polls: bool = False
    through: Counter = "lgkmcnt"


class _Recent(NamedTuple):
    """Waves that accessed the LDS, with what they had issued by then, but for so many `more`."""

    instruction: Instruction
    counter: Counter
    waves: Tickets
    issued: Tickets
    more: int

    @property
    def tickets(self) -> Tickets:
        """Their tickets."""
        return self.issued + self.more


def _tables(waves: int, pieces: int) -> tuple[npt.NDArray[np.int32], ...]:
    """Of each piece two numbers, and one for each of some waves.

    Rows do not begin at places that a processor's caches hold in the same set.
    """
    rows = np.zeros((2 + waves, pieces + _APART), np.int32)[:, :pieces]
    return rows[0], rows[1], rows[2:]


class Races:
    """The accesses to the LDS of all workgroups that run together."""

    def __init__(self, waves: Waves, in_flight: InFlight, piece: int) -> None:
        """`piece` is the smallest number of bytes that an instruction of the program accesses.

        Accesses that are not aligned to it make it smaller.
        """
        self._in_flight, self._piece = in_flight, piece
        self._per_group = waves.position.waves_per_group
        pieces = waves.lds.size_in_bytes // piece
        # A write through vmcnt has a negative ticket, and 0 is none.
        self._atomic, self._are_atomic = np.zeros(pieces, np.bool_), False
        self._written, self._writer, self._read = _tables(self._per_group, pieces)
        self.version = 0
        # For native code: where waves may be writing or reading, as masks of 64 chunks.
        self._chunk = max(_LEAST_CHUNK, (waves.lds.stride - 1).bit_length() - 6)
        self._writing, self._reading = (np.zeros(waves.count, np.int64) for _ in range(2))
        self._recent: deque[_Recent] = deque(maxlen=_REMEMBERED)
        # The LDS does what a wave asks in order: who sees a write, sees what came before.
        self._seen = np.zeros((waves.count, self._per_group), np.int64)
        self._told: set[tuple[int, str]] = set()
        self._passed, self._issued = (
            {counter: np.zeros(waves.count, np.int64) for counter in LARGEST} for _ in range(2)
        )
        self.barrier(np.arange(waves.count))

    def places(self) -> dict[Field, int]:
        """What native code looks at."""
        return {
            "per_group": self._per_group,
            "lds_passed": self._passed["lgkmcnt"].ctypes.data,
            "memory_passed": self._passed["vmcnt"].ctypes.data,
            "lds_shift": self._piece.bit_length() - 1,
            "lds_row": self._read.strides[0],
            "lds_written": self._written.ctypes.data,
            "lds_writer": self._writer.ctypes.data,
            "lds_read": self._read.ctypes.data,
            "lds_chunk": self._chunk,
            "lds_written_chunks": self._writing.ctypes.data,
            "lds_read_chunks": self._reading.ctypes.data,
            "lds_atomic": self._atomic.ctypes.data if self._are_atomic else 0,
        }

    def ran(self, waves: Waves, instruction: Instruction, issued: Tickets, number: int) -> None:
        """Native code has looked at an access, which is the one of that number behind `issued`."""
        self._recent.append(_Recent(instruction, "lgkmcnt", waves.index, issued, number))

    def writer(self, offset: int) -> str:
        """Who has written last at an offset, or that nobody has."""
        piece = offset // self._piece
        ticket, wave = int(self._written[piece]), int(self._writer[piece])
        if not ticket:
            return ", which nobody has written"
        counter: Counter = "vmcnt" if ticket < 0 else "lgkmcnt"
        found = self._earlier(wave, abs(ticket), counter)
        where = f" in line {found.line}" if found else ""
        return f", written by wave {wave % self._per_group}{where}"

    def barrier(self, passing: npt.NDArray[np.int64]) -> None:
        """Waves pass a barrier: what they have waited for is over for all of their workgroup."""
        for counter in ("vmcnt", "lgkmcnt"):
            for kept, now in (
                (self._passed, self._in_flight.done[counter]),
                (self._issued, self._in_flight.issued[counter]),
            ):
                kept[counter][passing] = now[passing]
        over = np.ones(len(passing), np.bool_)
        for counter, passed in self._passed.items():
            over &= passed[passing] == self._issued[counter][passing]
        self._writing[passing[over]] = self._reading[passing[over]] = 0

    def access(
        self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None, access: LdsAccessKind,
        instruction: Instruction, brought: tuple[Register, Width] | None = None,
    ) -> None:  # fmt: skip
        """Lanes access LDS: tell a fault where that meets another wave's access. `brought` are the
        registers that they store."""
        self._writing[waves.index] = self._reading[waves.index] = _EVERYWHERE
        issued = self._in_flight.issued[access.through][waves.index]
        self._recent.append(_Recent(instruction, access.through, waves.index, issued, 1))
        lane_waves = np.broadcast_to(waves.index[:, None], (waves.count, LANES))
        me = np.ascontiguousarray(lane_waves if mask is None else lane_waves[mask]).reshape(-1)
        if (offsets % self._piece).any():
            # A piece that is touched in part has bytes that are not accessed.
            self._cut(int(np.gcd.reduce(offsets.reshape(-1), initial=self._piece)))
        first = offsets.reshape(-1) // self._piece
        ticket = (self._in_flight.issued[access.through] + 1)[me]
        for i in range(max(1, size // self._piece)):
            pieces = first + i
            if access.polls:
                self._see(pieces, me)
                continue
            content = None if brought is None else Brought(
                waves, mask, waves.lds, *brought, self._piece, i
            )  # fmt: skip
            self._check_write(waves, pieces, me, mask, access, content)
            if access.writes:
                self._check_reads(waves, pieces, me, mask, access)
                if access.atomic:
                    self._update(pieces, me, ticket)
                else:
                    self._written[pieces] = -ticket if access.through == "vmcnt" else ticket
                    self._writer[pieces], self._atomic[pieces] = me, False
                    self._check_together(waves, pieces, me, mask, content)
            if not access.writes or access.atomic:
                self._read[me % self._per_group, pieces] = ticket

    def _cut(self, piece: int) -> None:
        """Keep smaller pieces from here on, each with what its whole went through."""
        times, self._piece = self._piece // piece, piece
        old = self._written, self._writer, self._read
        self._written, self._writer, self._read = _tables(self._per_group, times * len(old[0]))
        for new, each in zip((self._written, self._writer, self._read), old, strict=True):
            new[...] = each.repeat(times, axis=-1)
        self._atomic = self._atomic.repeat(times)
        self.version += 1

    def _update(self, pieces: Addresses, me: Tickets, ticket: Tickets) -> None:
        """Waves change what is there one after the other, and so see what those before did."""
        for wave in np.unique(me):
            own = me == wave
            self._see(pieces[own], me[own])
            self._written[pieces[own]], self._writer[pieces[own]] = ticket[own], wave
        self._atomic[pieces] = True
        if not self._are_atomic:
            self._are_atomic = True
            self.version += 1

    def _see(self, pieces: Addresses, me: Tickets) -> None:
        """Waves look at what others have written, and so know what those had seen."""
        writer, ticket = self._writer[pieces], self._written[pieces]
        for wave, other in np.unique(np.stack([me, writer])[:, ticket > 0], axis=1).T:
            np.maximum(self._seen[wave], self._seen[other], out=self._seen[wave])
        np.maximum.at(self._seen, (me, writer % self._per_group), ticket)

    def _check_write(
        self, waves: Waves, pieces: Addresses, me: Tickets, mask: Mask | None,
        access: LdsAccessKind, brought: Brought | None,
    ) -> None:  # fmt: skip
        """Tell a fault unless the last write is over. To write what is there already is none."""
        ticket, writer = self._written[pieces], self._writer[pieces]
        through_memory = ticket < 0
        passed, done = self._passed, self._in_flight.done
        over = np.where(through_memory, passed["vmcnt"][writer], passed["lgkmcnt"][writer])
        # One's own LDS instructions are in order, but not loads straight to LDS among them.
        own = np.where(through_memory, done["vmcnt"][writer], np.abs(ticket))
        if access.through == "vmcnt":
            own = np.where(through_memory, np.abs(ticket), done["lgkmcnt"][writer])
        late = np.abs(ticket) > np.where(writer == me, np.maximum(own, over), over)
        late &= through_memory | (ticket > self._seen[me, writer % self._per_group])
        if access.atomic:
            late &= ~self._atomic[pieces] | (writer == me)
        if brought is not None and late.any():
            late &= (writer == me) | ~brought.as_there(pieces)
        if late.any():
            at = int(np.argmax(late))
            counter: Counter = "vmcnt" if through_memory[at] else "lgkmcnt"
            verb = "writes" if access.writes else "reads"
            self._tell(waves, mask, at, pieces, verb, "wrote", int(writer[at]),
                       int(abs(ticket[at])), counter)  # fmt: skip

    def _check_together(
        self, waves: Waves, pieces: Addresses, me: Tickets, mask: Mask | None,
        brought: Brought | None,
    ) -> None:  # fmt: skip
        """Tell a fault where another wave writes something else by the same instruction."""
        beaten = self._writer[pieces] != me
        if not beaten.any():
            return
        lanes = np.flatnonzero(beaten)
        if brought is not None:
            differ = [lane for lane, last in brought.beaten(pieces) if me[lane] != me[last]]
            lanes = np.array(differ, np.int64)
        if len(lanes):
            at = int(lanes[0])
            wave, lane = (int(x) for x in np.argwhere(waves.lanes_of(mask))[at])
            address = int(pieces[at]) * self._piece % waves.lds.stride
            other = int(self._writer[pieces[at]]) % self._per_group
            what = "as well" if brought is None else "another value"
            waves.fault("race", f"writes LDS at {address:#x}, where wave {other} writes {what} "
                        "at once", wave, lane)  # fmt: skip

    def _check_reads(
        self, waves: Waves, pieces: Addresses, me: Tickets, mask: Mask | None, access: LdsAccessKind
    ) -> None:
        """Tell a fault unless all reads of other waves are over, and one's own before a load
        straight to LDS."""
        group = me // self._per_group * self._per_group
        own = self._in_flight.done["lgkmcnt"] if access.through == "vmcnt" else None
        for number in range(self._per_group):
            reader = group + number
            ticket = self._read[number, pieces]
            over = np.maximum(self._passed["lgkmcnt"][reader], self._seen[me, number])
            late = (ticket > over) & (reader != me)
            if own is not None:
                late |= (ticket > own[reader]) & (reader == me)
            # An atomic access reads, too: of another one that is no race.
            if access.atomic:
                late &= ~self._atomic[pieces]
            late &= ~(self._atomic[pieces] & (self._writer[pieces] == reader))
            if late.any():
                at = int(np.argmax(late))
                self._tell(waves, mask, at, pieces, "writes", "read", int(reader[at]),
                           int(ticket[at]), "lgkmcnt")  # fmt: skip

    def _tell(
        self,
        waves: Waves,
        mask: Mask | None,
        at: int,
        pieces: Addresses,
        verb: str,
        before: str,
        other: int,
        ticket: int,
        counter: Counter,
    ) -> None:
        wave, lane = (int(x) for x in np.argwhere(waves.lanes_of(mask))[at])
        address = int(pieces[at]) * self._piece % waves.lds.stride
        instruction = self._recent[-1].instruction
        # A loop may do it again and again: what it collides with is told with the first.
        again = (instruction.line, verb) in self._told
        self._told.add((instruction.line, verb))
        earlier = None if again else self._earlier(other, ticket, counter)
        who = "it" if other == int(waves.index[wave]) else f"wave {other % self._per_group}"
        what = f"{verb} LDS at {address:#x}, which {who} {before}"
        if who == "it" or ticket <= self._issued[counter][other]:
            waves.fault("no-wait", f"{what} and did not wait for: it needs `s_waitcnt "
                        f"{counter}` before the barrier" if who != "it" else
                        f"{what} and did not wait for: it needs `s_waitcnt {counter}`",
                        wave, lane, earlier=earlier)  # fmt: skip
        else:
            waves.fault("race", f"{what} with no barrier between", wave, lane, earlier=earlier)

    def _earlier(self, wave: int, ticket: int, counter: Counter) -> EarlierAccess | None:
        """The access of a wave that had the ticket, if it is remembered."""
        for each in reversed(self._recent):
            if each.counter == counter:
                found = each.tickets[each.waves == wave]
                if ticket in found:
                    number = wave % self._per_group
                    return EarlierAccess(each.instruction.line, each.instruction.text, number)
        return None
