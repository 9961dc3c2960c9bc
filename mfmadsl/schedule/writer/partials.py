"""Split K: several workgroups share a tile, and a second kernel adds up what they found.

Each leaves its sums in a workspace of its own, and they are added in the order of K, so that the
same numbers come out every time. The epilogue belongs to the second kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mfmadsl.model.architecture import WAVE_SIZE
from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.epilogue import Output
from mfmadsl.schedule.writer.pipeline import zero
from mfmadsl.schedule.writer.problem import Problem

_WAVES = 4
_RUN = 4


def batch_places(problem: Problem, z: Any) -> list[Any]:
    """Where on each batch axis a workgroup is."""
    places: list[Any] = []
    for axis in reversed(problem.batch):
        extent = emit.narrow(axis.extent)
        places.insert(0, emit.let(f"batch_{axis.variables[0].name}", z % extent))
        z = z // extent
    return places


@dataclass
class Partials:
    """The sums of each of `splits` parts of K, of each batch: `across` rows of `along` elements,
    both whole tiles, so that nothing needs a mask."""

    problem: Problem
    splits: int
    batches: Any
    along: Any
    across: Any
    dtype: str
    _memory: Any = field(init=False)
    _base: Any = None

    def __post_init__(self) -> None:
        size = self.splits * self.batches * self.along * self.across
        self._memory = emit.workspace("partials", size, self.dtype)

    def _start(self, split: Any, batch: Any) -> Any:
        area = emit.wide(self.along) * emit.wide(self.across)
        return (emit.wide(split) * emit.wide(self.batches) + emit.wide(batch)) * area

    def choose(self, split: Any, batch: Any) -> None:
        """The part that `put` writes."""
        self._base = emit.let("partial", self._start(split, batch))

    def put(self, value: Any, u: Any, v: Any, length: int) -> None:
        place = self._base + emit.wide(v) * emit.wide(self.along) + emit.wide(u)
        emit.store(self._memory, value, place, length)

    def addition(self) -> emit.Launch:
        """The second kernel: a thread for each run of neighbours in C."""
        problem = self.problem
        output = Output(problem, ())
        length = output.length(_RUN)
        runs = (output.along.extent + length - 1) // length
        threads = _WAVES * WAVE_SIZE
        blocks = (runs * output.across.extent + threads - 1) // threads

        def body(workgroup: tuple[Any, ...], wave: Any, lane: Any) -> None:
            x, _, z = workgroup
            count = emit.narrow(runs)
            # From the workgroup's first row of C on, so that offsets stay small.
            first = emit.let("first", x * threads // count)
            result = Output(problem, batch_places(problem, z))
            result.start(0, first)
            thread = emit.let("thread", x * threads + wave * WAVE_SIZE + lane)
            u, v = emit.let("along", thread % count * length), emit.let("across", thread // count)
            # Threads past the last run read that one again; what they store is past the end.
            row = emit.least(v, emit.narrow(output.across.extent) - 1)
            total = emit.local("total", length, self.dtype)
            emit.store(total, zero(self.dtype, length), 0, length)
            with emit.repeat("split", self.splits) as split:
                place = self._start(split, z) + emit.wide(row) * emit.wide(self.along)
                part = emit.load(self._memory, place + emit.wide(u), length)
                emit.store(total, emit.load(total, 0, length) + part, 0, length)
            sums = [emit.load(total, index) for index in range(length)]
            result.put(sums, u, v - first, (True, False))

        return emit.Launch((emit.narrow(blocks), 1, emit.narrow(self.batches)), _WAVES, body)
