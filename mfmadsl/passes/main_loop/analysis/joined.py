"""Short register steps as longer ones, so that a read of the LDS comes while a step computes.

Fragments are read one register step ahead. Where that computes for less time than the LDS takes to
answer, as a wave's tile of one instruction does, each step would wait for the next one's.
"""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.model import Architecture
from mfmadsl.passes.main_loop.analysis.halves import used, written
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions, are_apart, dealt
from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep

_ANSWER = 2  # latencies of the LDS, with the reads of a step one after the other


def joined(
    steps: Sequence[RegisterStep], chip: Architecture, instructions: MatrixInstructions
) -> Sequence[RegisterStep]:
    """Steps that compute no less than the LDS takes to answer, as far as two of them are left.

    They stay as they are where they compute anything but sums, or where the fragments of the first
    would be in use to the end.
    """
    products = [s for step in steps for s in step.computing]
    if not all(instructions.has(s.value) for s in products) or not are_apart(products):
        return steps
    groups = _groups(steps, _ANSWER * chip.lds_latency, instructions)
    if len(groups) == len(steps):
        return steps
    found = [_one(group, instructions) for group in groups]
    first = {element for read in found[0].reads for element in written(read)}
    if any(first.intersection(used(s)) for s in found[-1].computing):
        return steps
    return found


def _groups(
    steps: Sequence[RegisterStep], least: int, instructions: MatrixInstructions
) -> list[Sequence[RegisterStep]]:
    """Those that become one each; two that are about as long if there is no time for more."""

    def time(some: Sequence[RegisterStep]) -> int:
        """Cycles of their matrix instructions."""
        products = (s.value for step in some for s in step.computing)
        return sum(instructions.time(value) for value in products if instructions.has(value))

    starts = [0]
    for n in range(1, len(steps)):
        if time(steps[starts[-1] : n]) >= least <= time(steps[n:]):
            starts.append(n)
    if len(starts) == 1 < len(steps):
        half = time(steps) / 2
        starts.append(min(range(1, len(steps)), key=lambda n: abs(time(steps[:n]) - half)))
    return [steps[a:b] for a, b in zip(starts, [*starts[1:], len(steps)], strict=True)]


def _one(steps: Sequence[RegisterStep], instructions: MatrixInstructions) -> RegisterStep:
    reads = tuple(read for step in steps for read in step.reads)
    computing = [s for step in steps for s in step.computing]
    return RegisterStep(reads, tuple(dealt(computing, instructions)))
