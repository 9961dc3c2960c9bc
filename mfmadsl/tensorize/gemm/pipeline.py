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

LLVM would gather the loads in front and wait for them, so it is told to keep this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from mfmadsl.tensorize.gemm import emit
from mfmadsl.tensorize.gemm.emit import Emission
from mfmadsl.tensorize.gemm.operand import OperandCode, Step

_SLACK = 2
"""Matrix instructions between the last read of fragments and their first use, where there are so
many: an LDS read takes about as long as two large ones."""


@dataclass(frozen=True)
class Work:
    """One workgroup's way along K: `count` steps; `step(t)` says where step t lies."""

    count: Any
    step: Callable[[Any], Step]


@dataclass(frozen=True)
class Pipeline:
    """`multiply(slot)` has the matrix instructions of a register step, whose fragments are in that
    slot; `shadow` is how many other instructions can issue under one of them."""

    operands: tuple[OperandCode, OperandCode]
    multiply: Callable[[int], list[Emission]]
    shadow: int

    @property
    def register_steps(self) -> int:
        return self.operands[0].register_steps

    def emit(self, work: Work) -> None:
        """The whole loop, from the first fetch to the last product."""
        _all(self._fetches(work.step(0)))
        _all(self._stores())
        if work.count != 1:
            _all(self._fetches(Step(work.step(1).k)))
        emit.barrier()
        _all(self._reads(0))
        if work.count != 1:
            with emit.repeat("k_step", work.count - 1) as t:
                self._all_but_last()
                self._last(Step(emit.let("k_ahead", work.step(t + 2).k)))
        self._all_but_last()
        _all(self.multiply((self.register_steps - 1) % 2))

    def _all_but_last(self) -> None:
        for s in range(self.register_steps - 1):
            products = self.multiply(s % 2)
            reads = self._reads(s + 1)
            _spread(products, reads, ceil(len(reads) / max(1, len(products) - _SLACK)))

    def _last(self, ahead: Step) -> None:
        products = self.multiply((self.register_steps - 1) % 2)
        moves = self._moves(ahead)
        reads = self._reads(0)
        # The reads need the barrier: leave them the room that they would have elsewhere.
        room = max(1, len(products) - _SLACK - ceil(len(reads) / 2))
        rate = max(1, ceil(len(moves) / room))
        cut = min(len(products), ceil(len(moves) / rate))
        emit.barrier()
        _spread(products[:cut], moves, rate)
        emit.barrier()
        rest = products[cut:]
        _spread(rest, reads, ceil(len(reads) / max(1, len(rest) - _SLACK)))

    def _fetches(self, step: Step) -> list[Emission]:
        return [load for o in self.operands for unit in o.fetches(step) for load in unit]

    def _stores(self) -> list[Emission]:
        return [piece for o in self.operands for unit in o.stores() for piece in unit]

    def _moves(self, ahead: Step) -> list[Emission]:
        """Each unit goes to the LDS, and its registers are filled again."""
        return [
            piece
            for o in self.operands
            for stores, fetches in zip(o.stores(), o.fetches(ahead), strict=True)
            for piece in (*stores, *fetches)
        ]

    def _reads(self, step: int) -> list[Emission]:
        """Alternating between the operands, so that the first products can start early."""
        return [read for o in self.operands for read in o.reads(step, step % 2)]


def _all(pieces: Sequence[Emission]) -> None:
    for piece in pieces:
        piece()


def _spread(products: Sequence[Emission], others: Sequence[Emission], rate: int) -> None:
    """`rate` of the others before each product, in exactly this order."""
    waiting = list(others)
    for product in products:
        _all(waiting[:rate])
        del waiting[:rate]
        product()
        emit.keep_order()
    _all(waiting)


def zero(dtype: str, length: int) -> Any:
    value = tirx.const(0, dtype)
    return value if length == 1 else T.broadcast(value, length)
