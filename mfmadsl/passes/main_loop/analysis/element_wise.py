"""Element-wise computing under matrix instructions, which take other units of the chip.

What is computed of sums, such as the exponentials between two products, may stand anywhere between
the instruction that makes its operands and the one that needs its result. It is spread over that
window, so that a wave waits for neither. Matrix instructions keep their order, and their register
steps; what takes fragments comes no earlier than the register step that has read them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Call
from tvm.tirx import BufferStore

from mfmadsl.passes.tir.walk import walk

_FUNCTION = 4  # issue slots of the vector ALU that an exponential and the like take

Element = tuple[int, int]
"""A register: the handle of its array, and its number there."""


@dataclass(frozen=True)
class Statement:
    """One of a register step; `is_matrix` says what executes it."""

    store: BufferStore
    is_matrix: bool
    reads: frozenset[Element]
    writes: frozenset[Element]

    @property
    def cost(self) -> int:
        """About how many instructions it becomes; a constant becomes part of others."""
        if not self.reads:
            return 0
        found: list[int] = []
        kinds = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.Select, tirx.Cast)
        walk(
            self.store.value,
            (Call, lambda _: found.append(_FUNCTION)),
            (kinds, lambda _: found.append(1)),
        )
        return (1 + sum(found)) * len(self.writes)


@dataclass
class _Window:
    """Where a statement may stand: before the matrix instructions of these numbers."""

    first: int
    last: int


def overlapped(
    steps: Sequence[Sequence[Statement]], fragments: Iterable[int]
) -> list[list[Statement]]:
    """The statements of all register steps, those that are no matrix instructions moved.

    `fragments` are the arrays, by their handles, that are filled from the LDS.
    """
    flat = [statement for step in steps for statement in step]
    others = [n for n, statement in enumerate(flat) if not statement.is_matrix]
    if not others:
        return [list(step) for step in steps]
    before = _placed(flat, others, _earliest(steps, set(fragments)))
    found, number = [], 0
    for step in steps:
        now: list[Statement] = []
        for statement in step:
            if statement.is_matrix:
                now += [flat[n] for n in before[number]]
                now.append(statement)
                number += 1
        found.append(now)
    found[-1] += [flat[n] for n in before[number]]
    return found


def _earliest(steps: Sequence[Sequence[Statement]], fragments: set[int]) -> dict[int, int]:
    """The first matrix instruction of the step of each statement that takes fragments."""
    found: dict[int, int] = {}
    number = matrix = 0
    for step in steps:
        first = matrix
        for statement in step:
            if any(handle in fragments for handle, _ in statement.reads):
                found[number] = first
            matrix += statement.is_matrix
            number += 1
    return found


def _placed(
    flat: Sequence[Statement], others: Sequence[int], earliest: Mapping[int, int]
) -> dict[int, list[int]]:
    """The statements to stand before each matrix instruction, by its number."""
    needs = _needs(flat)
    windows = _windows(flat, others, needs, earliest)
    costs = {n: flat[n].cost for n in others}
    count = sum(statement.is_matrix for statement in flat)
    room = _room([(windows[n], costs[n]) for n in others])
    waiting = sorted(others, key=lambda n: (windows[n].last, n))
    before: dict[int, list[int]] = defaultdict(list)
    placed: set[int] = set()
    left = 0.0
    for number in range(count + 1):
        left = min(left, room) + room
        for n in list(waiting):
            window = windows[n]
            # One whose operands wait comes later, as do constants, which cost nothing anywhere.
            if window.first > number or any(
                m not in placed for m in needs[n] if not flat[m].is_matrix
            ):
                continue
            if window.last == number or (costs[n] and costs[n] / 2 <= left):
                before[number].append(n)
                placed.add(n)
                waiting.remove(n)
                left -= costs[n]
    return before


def _needs(flat: Sequence[Statement]) -> list[set[int]]:
    """The statements that must come before each: all that touch a register in turn."""
    written: dict[Element, int] = {}
    read: dict[Element, set[int]] = defaultdict(set)
    found = []
    for n, statement in enumerate(flat):
        before = {written[e] for e in statement.reads | statement.writes if e in written}
        for element in statement.writes:
            before |= read[element]
        found.append(before - {n})
        for element in statement.reads:
            read[element].add(n)
        for element in statement.writes:
            written[element] = n
            read[element] = set()
    return found


def _windows(
    flat: Sequence[Statement], others: Sequence[int], needs: Sequence[set[int]],
    earliest: Mapping[int, int],
) -> dict[int, _Window]:  # fmt: skip
    numbers: dict[int, int] = {}
    for n, statement in enumerate(flat):
        if statement.is_matrix:
            numbers[n] = len(numbers)
    windows = {n: _Window(earliest.get(n, 0), len(numbers)) for n in others}
    for n in reversed(range(len(flat))):
        last = windows[n].last if n in windows else numbers[n]
        for m in needs[n]:
            if m in windows:
                windows[m].last = min(windows[m].last, last)
    for n in others:
        window = windows[n]
        for m in needs[n]:
            if m in windows:
                window.first = max(window.first, windows[m].first)
            else:
                # The result is there when another instruction has had its time.
                window.first = max(window.first, min(numbers[m] + 2, window.last))
    return windows


def _room(items: Sequence[tuple[_Window, int]]) -> float:
    """The least cost before each matrix instruction for which all come in time."""
    most = 0.0
    by_last = sorted(items, key=lambda item: item[0].last)
    for first in {window.first for window, _ in items}:
        total = 0
        for window, cost in by_last:
            if window.first >= first:
                total += cost
                most = max(most, total / (window.last - first + 1))
    return most
