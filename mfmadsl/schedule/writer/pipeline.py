"""The main loop: what is computed, and under which matrix instructions everything else goes.

A step along K passes through three places: while the matrix cores work on step t, step t + 1 waits
in registers, and is put into the LDS before step t ends, and step t + 2 is on its way from memory.
Within a step, the fragments of the next register step are read under this one's matrix
instructions; those of the next step's first, under this step's last:

    register steps 0 .. S-2 of step t     read fragments s + 1
    register step S-1                     barrier: all waves have read step t
                                          put step t + 1 into the LDS, fetch step t + 2
                                          barrier: step t + 1 is there
                                          read fragments 0 of step t + 1

With two tiles in the LDS one barrier is enough, and the LDS is filled all through the step; loads
may then go straight into it. LLVM would gather the loads in front and wait for them, so it is told
to keep this order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.emit import Piece
from mfmadsl.schedule.writer.fetch import Step
from mfmadsl.schedule.writer.operand import OperandCode

_SLACK = 2
"""Matrix instructions between the last read of fragments and their first use, where there are so
many: an LDS read takes about as long as two of 32x32."""


@dataclass(frozen=True)
class Work:
    """One workgroup's way along K: `count` steps; `step(t)` says where step t lies."""

    count: Any
    step: Callable[[Any], Step]


@dataclass(frozen=True)
class Pipeline(ABC):
    """`multiply(slot)` has the matrix instructions of a register step, whose fragments are in that
    slot."""

    operands: tuple[OperandCode, OperandCode]
    multiply: Callable[[int], list[Piece]]

    @abstractmethod
    def emit(self, work: Work) -> None:
        """The whole loop, from the first fetch to the last product."""

    @property
    def register_steps(self) -> int:
        return self.operands[0].register_steps

    def start(self, work: Work) -> None:
        """Step 0 in the LDS, its first fragments in registers, and step 1 on its way to them."""
        _all(self.fetches(work.step(0)))
        _all(self.stores(0))
        if work.count != 1:
            _all(self.fetches(Step(work.step(1).k)))
        emit.barrier()
        _all(self.reads(0, 0))

    def finish(self, stage: int) -> None:
        """The last step, after which there is nothing to read."""
        for s in range(self.register_steps - 1):
            emit.wait_for_lds()
            _spread(self.multiply(s % 2), self.reads(s + 1, stage))
        emit.wait_for_lds()
        _all(self.last_products())

    def last_products(self) -> list[Piece]:
        """Of a step."""
        return self.multiply((self.register_steps - 1) % 2)

    def fetches(self, step: Step) -> list[Piece]:
        return [load for o in self.operands for unit in o.fetch.fetches(step) for load in unit]

    def stores(self, stage: int) -> list[Piece]:
        return [each for o in self.operands for unit in o.fetch.stores(stage) for each in unit]

    def moves(self, ahead: Step, stage: int) -> list[Piece]:
        """Each unit goes to the LDS, and its registers are filled again."""
        return [
            each
            for o in self.operands
            for stores, fetches in zip(o.fetch.stores(stage), o.fetch.fetches(ahead), strict=True)
            for each in (*stores, *fetches)
        ]

    def reads(self, step: int, stage: int) -> list[Piece]:
        return [read for o in self.operands for read in o.reads(step, stage)]


class OneBuffer(Pipeline):
    """One tile of each operand in the LDS."""

    def emit(self, work: Work) -> None:
        self.start(work)
        if work.count != 1:
            with emit.repeat("k_step", work.count - 1) as t:
                self._step(Step(emit.let("k_ahead", work.step(t + 2).k)))
        self.finish(0)

    def _step(self, ahead: Step) -> None:
        for s in range(self.register_steps - 1):
            emit.wait_for_lds()
            _spread(self.multiply(s % 2), self.reads(s + 1, 0))
        products, moves, reads = self.last_products(), self.moves(ahead, 0), self.reads(0, 0)
        # Reads go under what comes after the second barrier, the rest under what comes before it.
        tail = min(len(products) // 2, ceil(len(reads) / 2) + _SLACK)
        cut = len(products) - tail
        emit.wait_for_lds()
        emit.barrier()
        emit.wait_for_memory()
        _spread(products[:cut], moves, slack=0)
        emit.barrier()
        _spread(products[cut:], reads)


class TwoBuffers(Pipeline):
    """Two tiles of each operand in the LDS: while one is read, the other is filled.

    Two steps make a turn of the loop, so that addresses are constants. Where loads go straight into
    the LDS, step t + 2 is fetched as soon as all waves have read step t, which had its place.
    """

    def emit(self, work: Work) -> None:
        step = self._step_direct if self.operands[0].fetch.direct else self._step
        if self.operands[0].fetch.direct:
            self._start_direct(work)
        else:
            self.start(work)
        if work.count > 1:
            with emit.repeat("k_pair", work.count // 2) as turn:
                for stage in (0, 1):
                    ahead = Step(emit.let("k_ahead", work.step(turn * 2 + stage + 2).k))
                    step(ahead, stage)
        if self.operands[0].fetch.direct:
            emit.wait_for_memory()  # nothing may land after this tile is done
        # Of an even number of steps the last turn has fetched and read once more than it had to:
        # cheaper than the code of another step.
        if work.count % 2:
            self.finish(0)

    def _step(self, ahead: Step, stage: int) -> None:
        emit.wait_for_memory()
        moves = self.moves(ahead, 1 - stage)
        for s in range(self.register_steps - 1):
            emit.wait_for_lds()
            _spread(self.multiply(s % 2), [*self.reads(s + 1, stage), *moves])
            moves = []
        emit.wait_for_lds()
        emit.barrier()
        _spread(self.last_products(), self.reads(0, 1 - stage))

    def _start_direct(self, work: Work) -> None:
        first = work.step(0)
        if first.length is None:
            _all(self._loads(first, 0))
            emit.wait_for_memory()
        else:  # elements past the end of K are cleared in registers
            _all(self.fetches(first))
            _all(self.stores(0))
        emit.barrier()
        if work.count != 1:
            _all(self._loads(Step(work.step(1).k), 1))
        _all(self.reads(0, 0))

    def _step_direct(self, ahead: Step, stage: int) -> None:
        for s in range(self.register_steps - 1):
            emit.wait_for_lds()
            _spread(self.multiply(s % 2), self.reads(s + 1, stage))
        emit.wait_for_lds()
        emit.wait_for_memory()
        emit.barrier()
        _spread(self.last_products(), [*self.reads(0, 1 - stage), *self._loads(ahead, stage)])

    def _loads(self, step: Step, stage: int) -> list[Piece]:
        return [load for o in self.operands for load in o.fetch.moves(step, stage)]


def _all(pieces: Sequence[Piece]) -> None:
    for each in pieces:
        each.write()


def _spread(products: Sequence[Piece], others: Sequence[Piece], slack: int = _SLACK) -> None:
    """The others evenly before the products, none before the last `slack` if they have the room.

    LLVM keeps exactly this order.
    """
    waiting = list(others)
    room = max(1, len(products) - slack)
    total = sum(each.cost for each in others)
    spent = 0.0
    for index, product in enumerate(products):
        while waiting and spent + waiting[0].cost / 2 <= total * (index + 1) / room:
            each = waiting.pop(0)
            each.write()
            spent += each.cost
        product.write()
        emit.keep_order()
    _all(waiting)


def zero(dtype: str, length: int) -> Any:
    value = tirx.const(0, dtype)
    return value if length == 1 else T.broadcast(value, length)
