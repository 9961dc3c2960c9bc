"""What waves know to have happened: accesses to global memory that are ordered before their own.

Each wave numbers its accesses (its tickets, see `in_flight`). What a wave knows of another is a
ticket, up to which all of its accesses come before. It learns that by a barrier of its workgroup,
and by loading what another wave has stored or changed by an atomic: there lies a message with
what that one knew.

An access is `done` when its wave has waited for it; a store is `visible` when others could see it,
which takes more where a device has several L2 caches. Likewise a wave has first only `seen` a
message; its plain loads may `rely` on that when it has emptied its caches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.bits import Mask

Tickets = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]

DONE, VISIBLE, ISSUED = range(3)


@dataclass(frozen=True)
class _Message:
    """What a wave knew when it wrote a word: of itself, of its workgroup, and of others. One that
    an atomic wrote has in it what the word had `before`."""

    wave: int
    own: tuple[int, int, int]
    mates: Tickets
    visible_mates: Tickets
    others: Tickets | None
    before: int = 0


@dataclass(frozen=True)
class _Row:
    """What a wave knows of all waves: tickets (DONE or VISIBLE, wave)."""

    seen: Tickets
    relied: Tickets


@dataclass
class Knowledge:
    """Of all `waves` of a launch, in workgroups of `per_group`; `several` says of L2 caches."""

    waves: int
    per_group: int
    several: bool
    _messages: list[_Message | None] = field(default_factory=lambda: [None])
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _content: dict[int, Tickets] = field(default_factory=dict)
    _rows: dict[int, _Row] = field(default_factory=dict)
    _learned: dict[int, set[int]] = field(default_factory=dict)
    _latest: dict[int, int] = field(default_factory=dict)
    _written_back: dict[int, tuple[int, Tickets]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.passed: Tickets = np.zeros(self.waves, np.int32)
        """Up to which tickets accesses come before all that their workgroups do now."""
        # Of these, up to which their own waves have made them visible.
        self._shown: Tickets = np.zeros(self.waves if self.several else 0, np.int32)

    @property
    def messages(self) -> int:
        """How many have been written."""
        return len(self._messages) - 1

    def _mates(self, wave: int) -> slice:
        first = wave // self.per_group * self.per_group
        return slice(first, first + self.per_group)

    def barrier(self, ids: Ids, issued: Ids, done: Ids) -> None:
        """Waves pass a barrier; a workgroup knows then what one of its waves did."""
        self.passed[ids] = issued
        if self._written_back or self._rows:
            self._pass_on(ids, done)

    def _pass_on(self, ids: Ids, done: Ids) -> None:
        for wave, waited in zip(ids.tolist(), done.tolist(), strict=True):
            if wave in self._written_back:
                self._shown[wave] = min(waited, self._written_back[wave][0])
        for group in {wave // self.per_group for wave in self._rows} & set(
            (ids // self.per_group).tolist()
        ):
            mates = range(group * self.per_group, (group + 1) * self.per_group)
            rows = [row for wave in mates if (row := self._rows.get(wave)) is not None]
            row = _Row(
                np.maximum.reduce([row.seen for row in rows]),
                np.maximum.reduce([row.relied for row in rows]),
            )
            learned = set().union(*(self._learned.get(wave, set()) for wave in mates))
            for wave in mates:
                self._rows[wave], self._learned[wave] = row, set(learned)

    def write_back(self, ids: Ids, issued: Ids) -> None:
        """Waves write their L2 back: what they and their workgroups have stored before."""
        for wave, ticket in zip(ids.tolist(), issued.tolist(), strict=True):
            self._written_back[wave] = ticket, self.passed[self._mates(wave)].copy()

    def invalidate(self, ids: Ids, done: Ids) -> None:
        """Waves empty their caches: they rely on what they have seen and waited for."""
        for wave, ticket in zip(ids.tolist(), done.tolist(), strict=True):
            row = self._rows.get(wave)
            if row is not None and self._latest.get(wave, 0) <= ticket:
                self._rows[wave] = _Row(row.seen, row.seen)

    def message(self, wave: int, issued: int, done: int) -> int:
        """The number of a message with what a wave knows."""
        passed = self.passed[self._mates(wave)].copy()
        # A barrier orders what its own workgroup does: others see what the wave has waited for.
        passed[wave % self.per_group] = min(passed[wave % self.per_group], done)
        if self.several:
            shown = self._shown[self._mates(wave)]
            written, by_me = self._written_back.get(wave, (0, shown))
            visible_mates = np.maximum(by_me, shown)
        else:
            written, visible_mates = done, passed
        row = self._rows.get(wave)
        own = done, min(done, written), issued
        others = None if row is None else row.seen
        self._messages.append(_Message(wave, own, passed, visible_mates, others))
        return len(self._messages) - 1

    def chained(self, before: int, message: int) -> int:
        """A message that has another one in it."""
        if not before:
            return message
        key = before, message
        if key not in self._numbers:
            last = self._messages[message]
            assert last is not None
            self._messages.append(
                _Message(last.wave, last.own, last.mates, last.visible_mates, last.others, before)
            )
            self._numbers[key] = len(self._messages) - 1
        return self._numbers[key]

    def learn(self, wave: int, message: int, ticket: int) -> None:
        """A wave loads a word that has a message, by an access with that ticket."""
        learned = self._learned.setdefault(wave, set())
        if not message or message in learned:
            return
        learned.add(message)
        self._latest[wave] = ticket
        content, own = self._all(message), self._mates(wave)
        row = self._rows.get(wave)
        seen = content[:ISSUED] if row is None else np.maximum(row.seen, content[:ISSUED])
        relied = np.zeros_like(seen) if row is None else row.relied.copy()
        # A workgroup's accesses are in order, and its waves share a cache.
        seen = seen.copy()
        for known in (seen, relied):
            np.maximum(known[:, own], content[ISSUED, own], out=known[:, own])
        self._rows[wave] = _Row(seen, relied)

    def has_read(self, wave: int, message: int) -> None:
        """A wave has loaded what it then changed, all in one access."""
        self._learned.setdefault(wave, set()).add(message)

    def has_learned(self, ids: Ids, messages: Ids) -> Mask:
        """Whether waves have loaded what was written with these messages."""
        nothing: set[int] = set()
        pairs = zip(ids.tolist(), messages.tolist(), strict=True)
        return np.array([message in self._learned.get(wave, nothing) for wave, message in pairs])

    def told(self, wave: int, other: int, ticket: int) -> bool:
        """Whether a wave has read a message that another one wrote behind an access, waited for or
        not."""
        learned = self._learned.get(wave, set())
        return any(self._all(message)[ISSUED, other] >= ticket for message in learned)

    def wrote_back(self, wave: int, ticket: int) -> bool:
        """Whether a wave has written its L2 back behind an access."""
        return self._written_back.get(wave, (0, None))[0] >= ticket

    def _all(self, message: int) -> Tickets:
        """What a message tells, with those in it: tickets (DONE, VISIBLE or ISSUED, wave)."""
        told: Tickets = np.zeros((3, self.waves), np.int32)
        number = message
        while number:
            if number in self._content:
                np.maximum(told, self._content[number], out=told)
                break
            each = self._messages[number]
            assert each is not None
            mates = self._mates(each.wave)
            np.maximum(told[DONE, mates], each.mates, out=told[DONE, mates])
            np.maximum(told[ISSUED, mates], each.mates, out=told[ISSUED, mates])
            np.maximum(told[VISIBLE, mates], each.visible_mates, out=told[VISIBLE, mates])
            told[:, each.wave] = np.maximum(told[:, each.wave], each.own)
            if each.others is not None:
                np.maximum(told[:ISSUED], each.others, out=told[:ISSUED])
            number = each.before
        self._content[message] = told
        return told

    def before(self, ids: Ids, others: Ids, tickets: Tickets, visible: Mask, relies: bool) -> Mask:
        """Whether accesses of other waves come before what waves do now.

        Of those that are not `visible` by themselves more must be known; one that `relies` on
        caches looks at what its wave has emptied them for.
        """
        mine = ids // self.per_group == others // self.per_group
        known: Mask = mine & (tickets <= self.passed[others])
        if self._rows and not known.all():
            for wave in np.unique(ids[~known]):
                row = self._rows.get(int(wave))
                if row is not None:
                    lanes = (ids == wave) & ~known
                    of_all = row.relied if relies else row.seen
                    kind = np.where(visible[lanes], DONE, VISIBLE)
                    known[lanes] = of_all[kind, others[lanes]] >= tickets[lanes]
        return known
