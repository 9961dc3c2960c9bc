"""What of a wave is in flight: the registers that loads will still write, and how young those are.

Waves that run together mostly have the same in flight: a state has a number, and what follows from
an instruction is worked out once for each state and instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import LARGEST, Counter, wait_counts
from mfmadsl.emulator.native.stretch import Stretch

_Place = tuple[str, int]
_Ages = dict[Counter, int]
_OLDEST = 1 << 12  # of ages that are told apart
_MOST = 1 << 16  # states, and instructions


@dataclass(frozen=True)
class Late:
    """A use of a register that a load will still write, and which wait would be enough before."""

    verb: str
    bank: str
    index: int
    counter: Counter
    enough: int


@dataclass(frozen=True)
class _Flight:
    """Of each register, by counter, how many instructions were issued since its last load. If they
    are `mixed`, those of lgkmcnt complete in any order, and their ages do not matter."""

    mixed: bool
    pending: tuple[tuple[_Place, tuple[tuple[Counter, int], ...]], ...]

    def ages(self) -> dict[_Place, _Ages]:
        """The same to change."""
        return {place: dict(ages) for place, ages in self.pending}


_Furthest = dict[Counter, int | None]


@dataclass(frozen=True)
class FlightPath:
    """What follows from the instructions of a stretch, behind each of them: the state; how many
    were issued; up to which of these, counted from where the stretch begins, all are complete; and
    whether lgkmcnt may hold more than it can, if that changes. `changes` says whether any does."""

    numbers: tuple[int, ...]
    issued: tuple[Mapping[Counter, int], ...]
    done: tuple[_Furthest, ...]
    overflows: tuple[bool | None, ...]
    changes: tuple[bool, ...]


class Flights:
    """The states of a program, numbered as they are met; in that of number 0 nothing is."""

    def __init__(self) -> None:
        nothing = _Flight(False, ())
        self._known, self._numbers = [nothing], {nothing: 0}
        self._issued: dict[tuple[int, int, bool], int] = {}
        self._waited: dict[tuple[int, Counter, int], int] = {}
        self._late: dict[tuple[int, int, bool], Mapping[tuple[int, ...], Late]] = {}
        self._paths: dict[tuple[int, Stretch, bool, bool], FlightPath] = {}
        self._operations: dict[int, Operation] = {}  # kept, so that their ids stay theirs

    @property
    def is_full(self) -> bool:
        """Whether there are so many states that it is better to begin anew."""
        return len(self._known) > _MOST or len(self._operations) > _MOST

    def _id(self, operation: Operation) -> int:
        return id(self._operations.setdefault(id(operation), operation))

    def _number(self, mixed: bool, pending: Mapping[_Place, _Ages]) -> int:
        flight = _Flight(mixed, tuple((k, tuple(ages.items())) for k, ages in pending.items()))
        if flight not in self._numbers:
            self._numbers[flight] = len(self._known)
            self._known.append(flight)
        return self._numbers[flight]

    def is_mixed(self, number: int) -> bool:
        """Whether a state has instructions of lgkmcnt that complete in any order."""
        return self._known[number].mixed

    def issue(self, number: int, operation: Operation, shared: bool) -> int:
        """The state behind an instruction. `shared` says that some wave's are mixed."""
        key = number, self._id(operation), shared
        if key not in self._issued:
            self._issued[key] = self._issue(self._known[number], operation, shared)
        return self._issued[key]

    def _issue(self, flight: _Flight, operation: Operation, shared: bool) -> int:
        pending = flight.ages()
        for counter in operation.counters:
            if counter == "vmcnt" or not flight.mixed:
                for ages in pending.values():
                    if counter in ages:
                        ages[counter] = min(ages[counter] + 1, _OLDEST)
            if counter == "vmcnt" or not shared:
                # The chip does not issue more than the counter holds: the oldest are complete.
                pending = _without(pending, counter, LARGEST[counter])
            for register in operation.writes:
                for index in register.indices:
                    pending.setdefault((register.bank, index), {})[counter] = 0
        mixed = flight.mixed or not operation.in_order
        if mixed and not flight.mixed:
            for ages in pending.values():
                if "lgkmcnt" in ages:
                    ages["lgkmcnt"] = 0
        return self._number(mixed, pending)

    def wait(self, number: int, counter: Counter, count: int) -> int:
        """The state behind a wait for all but so many."""
        key = number, counter, count
        if key not in self._waited:
            flight = self._known[number]
            mixed, pending = flight.mixed, flight.ages()
            if counter == "vmcnt" or not mixed or not count:
                pending = _without(pending, counter, count)
            mixed = mixed and not (counter == "lgkmcnt" and not count)
            self._waited[key] = self._number(mixed, pending)
        return self._waited[key]

    def along(self, number: int, stretch: Stretch, others: bool, stops: bool) -> FlightPath:
        """What follows from a stretch, as far as nothing in it is late. `others` says that other
        waves have mixed ones; with `stops` it ends where their states change."""
        key = number, stretch, others, stops
        if key not in self._paths:
            self._paths[key] = self._path(number, stretch, others, stops)
        return self._paths[key]

    def _path(self, number: int, stretch: Stretch, others: bool, stops: bool) -> FlightPath:
        path, begin = FlightPath((), (), (), (), ()), number
        issued = dict.fromkeys(LARGEST, 0)
        done: _Furthest = dict.fromkeys(LARGEST)
        overflows: bool | None = None
        for part in stretch.parts:
            operation, shared = part.operation, others or self.is_mixed(number)
            counters = () if operation is None else operation.counters
            if operation is not None and self.late(number, operation, shared):
                break
            if stops and "lgkmcnt" in counters and not shared:
                break
            if operation is not None and counters:
                number = self.issue(number, operation, shared)
                for counter in counters:
                    issued[counter] += 1
                    if counter == "vmcnt" or not shared:
                        _advance(done, counter, issued[counter] - LARGEST[counter])
                overflows = shared if "lgkmcnt" in counters else overflows
            elif part.instruction.name == "s_waitcnt":
                for counter, count in wait_counts(part.instruction.modifiers["argument"]).items():
                    if counter == "vmcnt" or not count or not self.is_mixed(number):
                        _advance(done, counter, issued[counter] - count)
                    number = self.wait(number, counter, count)
            has_changed = number != begin or any(issued.values()) or overflows is not None
            has_changed = has_changed or any(each is not None for each in done.values())
            path = FlightPath(
                (*path.numbers, number), (*path.issued, dict(issued)), (*path.done, dict(done)),
                (*path.overflows, overflows), (*path.changes, has_changed),
            )  # fmt: skip
        return path

    def clip(self, number: int) -> int:
        """The state in which only as many of lgkmcnt are in flight as it holds."""
        flight = self._known[number]
        pending = _without(flight.ages(), "lgkmcnt", LARGEST["lgkmcnt"])
        return self._number(flight.mixed, pending)

    def late(
        self, number: int, operation: Operation, shared: bool
    ) -> Mapping[tuple[int, ...], Late]:
        """What an instruction uses too early, by places in an order; `shared` as above."""
        key = number, self._id(operation), shared
        if key not in self._late:
            flight = self._known[number]
            self._late[key] = dict(_late(flight, operation, shared)) if flight.pending else {}
        return self._late[key]


def _advance(done: _Furthest, counter: Counter, to: int) -> None:
    before = done[counter]
    done[counter] = to if before is None else max(before, to)


def _without(pending: dict[_Place, _Ages], counter: Counter, count: int) -> dict[_Place, _Ages]:
    """All but those of a counter behind which so many were issued."""
    left = {}
    for place, ages in pending.items():
        over = ages.get(counter, -1) >= count
        kept = {each: age for each, age in ages.items() if each != counter} if over else ages
        if kept:
            left[place] = kept
    return left


def _late(
    flight: _Flight, operation: Operation, shared: bool
) -> Iterable[tuple[tuple[int, ...], Late]]:
    pending = flight.ages()
    used = (("reads", [read.register for read in operation.reads]), ("writes", operation.writes))
    for number, (verb, registers) in enumerate(used):
        in_order = operation.counters if verb == "writes" else ()
        for position, register in enumerate(registers):
            for index in register.indices:
                ages = pending.get((register.bank, index), {})
                for place, (counter, age) in enumerate(ages.items()):
                    mixed = counter == "lgkmcnt"
                    if counter in in_order and not (mixed and shared):
                        continue  # a later load of the same kind comes later
                    enough = 0 if mixed and flight.mixed else age
                    late = Late(verb, register.bank, index, counter, enough)
                    yield (number, position, index, place), late
