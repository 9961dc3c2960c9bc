"""Iterations by halves of their sums, which free early what only the first half needs of the LDS.

Register steps follow K, and each reads from all of the tile: so a tile is in use for the whole of a
iteration, and what is to take its place has but one iteration to come. Where half of the sums take
all of K, and then the other half, the rows that only the first half multiplies by are free in the
middle of the iteration, and so is all that both halves share, which stays in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tvm.tirx import BufferStore

from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions, are_apart
from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep
from mfmadsl.passes.tir.expression import bits_of, elements_of, loads_of

LEAST = 4
"""Matrix instructions of a register step, under which the next one's fragments can be read."""

Element = tuple[int, int]
"""A register: the handle of its array, and its number there."""


def in_halves(
    steps: Sequence[RegisterStep], instructions: MatrixInstructions
) -> Iterator[list[RegisterStep]]:
    """Ways to take the register steps of the first half of the sums, then those of the second.

    The first has two steps in one, which are as long as those that were halved; the second takes
    fewer registers. There is none of steps that are too short, or compute anything but sums.
    """
    products = [s for step in steps for s in step.computing]
    if not all(instructions.has(s.value) for s in products) or not are_apart(products):
        return
    sums = list(dict.fromkeys(_sum(s) for s in steps[0].computing))
    first = set(sums[: len(sums) // 2])
    computing = [
        [s for s in step.computing if (_sum(s) in first) == half]
        for half in (True, False)
        for step in steps
    ]
    pairs = [[*a, *b] for a, b in zip(computing[::2], computing[1::2], strict=True)]
    for cut in (pairs, computing) if len(steps) % 2 == 0 else (computing,):
        made = _with_reads(cut, [read for step in steps for read in step.reads])
        if made is not None:
            yield made


def _with_reads(
    computing: Sequence[list[BufferStore]], reads: Sequence[BufferStore]
) -> list[RegisterStep] | None:
    """Steps that read what they are the first to use; None if they cannot follow each other."""
    if any(len(products) < LEAST for products in computing):
        return None
    waiting = [(read, set(written(read))) for read in reads]
    found = []
    for products in computing:
        needed = {element for s in products for element in used(s)}
        own = tuple(read for read, brings in waiting if brings & needed)
        waiting = [(read, brings) for read, brings in waiting if not brings & needed]
        found.append(RegisterStep(own, tuple(products)))
    last = {element for s in computing[-1] for element in used(s)}
    if waiting or any(last.intersection(written(read)) for read in found[0].reads):
        return None  # the next iteration's first fragments come under the last step of this one
    return found


def words(steps: Sequence[RegisterStep]) -> int:
    """The most words of fragments that a lane holds at a time, the next step's among them."""
    read = [{e: bits_of(r.buffer.dtype) for r in s.reads for e in written(r)} for s in steps]
    last_use = {e: n for n, step in enumerate(steps) for s in step.computing for e in used(s)}
    held: dict[Element, int] = {}
    most = 0
    for number, here in enumerate(read):
        held |= here
        coming = read[(number + 1) % len(steps)]
        most = max(most, sum(held.values()) + sum(coming.values()))
        held = {e: bits for e, bits in held.items() if last_use.get(e, 0) > number}
    return most // 32


def sum_words(steps: Sequence[RegisterStep]) -> int:
    """The words of sums that a lane holds."""
    found = {(e, bits_of(s.buffer.dtype)) for s in steps[0].computing for e in written(s)}
    return sum(bits for _, bits in found) // 32


def _sum(statement: BufferStore) -> Element:
    return next(iter(written(statement)))


def written(statement: BufferStore) -> Iterable[Element]:
    """The registers that it writes."""
    return ((statement.buffer.__chandle__(), n) for n in elements_of(statement.indices[0]))


def used(statement: BufferStore) -> Iterable[Element]:
    """Those that it reads, but for the array that it writes."""
    own = statement.buffer.__chandle__()
    return (
        (load.source.__chandle__(), n)
        for load in loads_of(statement.value)
        if load.source.__chandle__() != own
        for n in elements_of(load.indices[0])
    )
