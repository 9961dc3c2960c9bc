"""Short register steps as longer ones, so that a read of the LDS comes while a step computes.

Fragments are read one register step ahead. Where that computes for less time than the LDS takes to
answer, as a wave's tile of one instruction does, each step would wait for the next one's.
"""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.model import Architecture
from mfmadsl.passes.main_loop.analysis.halves import used, written
from mfmadsl.passes.main_loop.analysis.matrix import are_apart, cycles, dealt, is_matrix
from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep

_ANSWER = 2  # latencies of the LDS, with the reads of a step one after the other


def joined(steps: Sequence[RegisterStep], chip: Architecture) -> Sequence[RegisterStep]:
    """Steps that compute no less than the LDS takes to answer, as far as two of them are left.

    They stay as they are where they compute anything but sums, or where the fragments of the first
    would be in use to the end.
    """
    products = [s for step in steps for s in step.computing]
    if not all(is_matrix(s.value) for s in products) or not are_apart(products):
        return steps
    groups = _groups(steps, chip)
    if len(groups) == len(steps):
        return steps
    found = [_one(group) for group in groups]
    first = {element for read in found[0].reads for element in written(read)}
    if any(first.intersection(used(s)) for s in found[-1].computing):
        return steps
    return found


def _groups(steps: Sequence[RegisterStep], chip: Architecture) -> list[Sequence[RegisterStep]]:
    """Those that become one each; two that are about as long if there is no time for more."""
    least = _ANSWER * chip.lds_latency
    starts = [0]
    for n in range(1, len(steps)):
        if _time(steps[starts[-1] : n], chip) >= least <= _time(steps[n:], chip):
            starts.append(n)
    if len(starts) == 1 < len(steps):
        half = _time(steps, chip) / 2
        starts.append(min(range(1, len(steps)), key=lambda n: abs(_time(steps[:n], chip) - half)))
    return [steps[a:b] for a, b in zip(starts, [*starts[1:], len(steps)], strict=True)]


def _time(steps: Sequence[RegisterStep], chip: Architecture) -> int:
    """Cycles of the matrix instructions of some steps."""
    products = (s.value for step in steps for s in step.computing)
    return sum(cycles(value, chip) for value in products if is_matrix(value))


def _one(steps: Sequence[RegisterStep]) -> RegisterStep:
    reads = tuple(read for step in steps for read in step.reads)
    return RegisterStep(reads, tuple(dealt([s for step in steps for s in step.computing])))
