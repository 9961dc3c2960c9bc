"""When waves run: together, until some of them wait in loops for what others do.

Workgroups start in portions, the next when the last has ended. Where waves wait in loops, whatever
else can run does so: waves at a barrier that all of their workgroup have reached, and workgroups
that the chip holds beside those that have started. Then those in loops look again. If all of them
find what they found, and nothing in memory has changed, they would do so for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from mfmadsl.emulator.machine.deadlock import Standstill
from mfmadsl.emulator.machine.executor import OFTEN, Executor
from mfmadsl.emulator.machine.memory import Changes
from mfmadsl.emulator.machine.order import Lockstep, WaveOrder
from mfmadsl.emulator.machine.recurrence import Recurrence
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import Waves

_LONG, _LONG_AGAIN = 1024, 256
"""Branches back of a group, after which others have their turn although it never comes back in the
same state: it may count how often it has looked. The first is more than most loops need."""


class Pending(Protocol):
    """Workgroups that have not started."""

    @property
    def left(self) -> int:
        """How many are to run."""

    @property
    def beside(self) -> int:
        """How many there are, with those that run only where others wait for them."""

    def start(self, most: int) -> tuple[Waves, Watch | None]:
        """Start some of them, up to so many, and say who watches their waves."""


class Scheduler:
    """Runs all waves of a launch. `resident` says how many workgroups the chip holds at once."""

    def __init__(
        self,
        executor: Executor,
        workgroups: Pending,
        resident: Callable[[], int],
        order: WaveOrder | None = None,
    ) -> None:
        self._executor, self._workgroups, self._resident = executor, workgroups, resident
        self._order = Lockstep() if order is None else order
        self._watches: list[Watch | None] = []  # of the portions that have started
        self._recurrences: list[Recurrence] = []
        self._running: list[Waves] = []
        self._at_barrier: list[Waves] = []
        self._in_loop: list[Waves] = []
        self._changes: Changes | None = None  # looked for once a wave waits in a loop
        self._anew = False  # whether a wave has come to wait in a loop, since all have looked
        self._long = _LONG
        executor.is_back = self._is_back

    def run(self) -> None:
        """Run all workgroups. Raises EmulationError where waves wait for what cannot happen."""
        while True:
            if self._running:
                self._turn()
            elif self._at_barrier or self._in_loop:
                self._go_on()
            elif self._workgroups.left:
                self._watches.clear()
                self._recurrences.clear()
                self._start(self._workgroups.left)
            else:
                return

    def _start(self, most: int) -> None:
        waves, watch = self._workgroups.start(most)
        waves.portion = len(self._watches)
        self._watches.append(watch)
        self._recurrences.append(Recurrence(waves))
        self._running.append(waves)
        self._look_for_changes([waves])

    def _start_beside(self) -> bool:
        """Start workgroups beside those that have not ended, if there are any and the chip holds
        them."""
        if not self._workgroups.beside:
            return False
        room = self._resident() - len(_workgroups(self._unfinished))
        if room > 0:
            self._start(room)
        return room > 0

    @property
    def _unfinished(self) -> list[Waves]:
        return [*self._running, *self._at_barrier, *self._in_loop]

    def _turn(self) -> None:
        """Some waves run until they part, meet others, wait, or end."""
        turn = self._order.takes(self._running)
        group, watch = turn.group, self._watches[turn.group.portion]
        stopped, split = self._executor.advance(group, turn.meeting, watch, turn.until)
        if stopped == "barrier":
            self._at_barrier.append(group)
        elif stopped != "end":
            split.append(group)
        for each in split:
            self._put_back(each)
        if not self._order.in_lockstep:
            if stopped in ("barrier", "end"):
                self._pass_barriers()
            if self._order.starts_more():
                self._start_beside()
        self._running = self._executor.joined(self._running)

    def _put_back(self, group: Waves) -> None:
        """Waves go on running, unless they wait in a loop."""
        returned, group.returned = group.returned, False
        if not returned or group.returns < OFTEN:
            self._running.append(group)
            return
        recurrence = self._recurrences[group.portion]
        again = recurrence.find(group)
        if again.any():
            waiting = group if again.all() else group.select(again, group.pc)
            self._anew |= recurrence.first_time(waiting)
            self._in_loop.append(waiting)
            if self._changes is None:
                self._changes = Changes()
                self._look_for_changes(self._unfinished)
            if waiting is group:
                return
            group = group.select(~again, group.pc)
        if group.returns % self._long:
            self._running.append(group)
        else:
            self._anew, self._long = True, _LONG_AGAIN
            self._in_loop.append(group)

    def _is_back(self, group: Waves) -> bool:
        """Whether to look at waves that have come back: some may wait, or it is time to."""
        is_time = not (group.returns % OFTEN and group.returns % self._long)
        return is_time or self._recurrences[group.portion].may_find(group)

    def _look_for_changes(self, groups: Sequence[Waves]) -> None:
        for group in groups:
            for store in (group.memory, group.lds, group.scratch):
                store.changes = self._changes

    def _go_on(self) -> None:
        """No wave runs: let those that wait do so, or tell that they wait for ever."""
        if self._pass_barriers():
            return
        if self._anew or (self._changes is not None and self._changes.seen):
            self._anew = False
            if self._changes is not None:
                self._changes.seen = False
            self._running, self._in_loop = self._executor.joined(self._in_loop), []
        elif not self._start_beside():
            raise Standstill(
                self._in_loop, self._at_barrier, self._workgroups.beside, self._recurrences
            ).told(self._executor)

    def _pass_barriers(self) -> bool:
        """Let waves pass barriers that all of their workgroup have reached that have not ended."""
        if not self._at_barrier:
            return False
        away = _workgroups([*self._running, *self._in_loop])
        stay = np.isin(np.concatenate([_numbers(group) for group in self._at_barrier]), away)
        ends = np.cumsum([group.count for group in self._at_barrier])
        passing: dict[int, list[Waves]] = {}
        staying = []
        for group, stays in zip(self._at_barrier, np.split(stay, ends[:-1]), strict=True):
            if stays.any():
                staying.append(group.select(stays, group.pc))
            if not stays.all():
                passes = group.select(~stays, group.pc) if stays.any() else group
                passing.setdefault(group.portion, []).append(passes)
        for portion, groups in passing.items():
            watch = self._watches[portion]
            if watch is not None:
                watch.barrier(groups)
            self._running += self._executor.joined(groups)
        self._at_barrier = staying
        return bool(passing)


def _numbers(group: Waves) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The workgroups of waves, told apart from those of other portions."""
    return group.workgroup + (group.portion << 32)


def _workgroups(groups: Sequence[Waves]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The different workgroups of waves."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *map(_numbers, groups)]))


class _OnePortion:
    """Waves that have started, and are all that there are."""

    left = beside = 1

    def __init__(self, waves: Waves, watch: Watch | None) -> None:
        self._waves, self._watch = waves, watch

    def start(self, most: int) -> tuple[Waves, Watch | None]:
        """Give the waves."""
        del most
        self.left = self.beside = 0
        return self._waves, self._watch


def run_together(executor: Executor, waves: Waves, watch: Watch | None = None) -> None:
    """Run waves to their ends, under the eyes of `watch`."""
    Scheduler(executor, _OnePortion(waves, watch), lambda: 0).run()
