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
from mfmadsl.tensorize.gemm.emit import Piece
from mfmadsl.tensorize.gemm.fetch import Step
from mfmadsl.tensorize.gemm.operand import OperandCode

_SLACK = 2
"""Matrix instructions between the last read of fragments and their first use, where there are so
many: an LDS read takes about as long as two of 32x32."""


@dataclass(frozen=True)
class Work:
    """One workgroup's way along K: `count` steps; `step(t)` says where step t lies."""

    count: Any
    step: Callable[[Any], Step]


@dataclass(frozen=True)
class Pipeline:
    """`multiply(slot)` has the matrix instructions of a register step, whose fragments are in that
    slot."""

    operands: tuple[OperandCode, OperandCode]
    multiply: Callable[[int], list[Piece]]

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
            emit.wait_for_lds()
            _spread(self.multiply(s % 2), self._reads(s + 1))

    def _last(self, ahead: Step) -> None:
        products = self.multiply((self.register_steps - 1) % 2)
        moves, reads = self._moves(ahead), self._reads(0)
        # Reads go under what comes after the second barrier, the rest under what comes before it.
        tail = min(len(products) // 2, ceil(len(reads) / 2) + _SLACK)
        cut = len(products) - tail
        emit.wait_for_lds()
        emit.barrier()
        emit.wait_for_memory()
        _spread(products[:cut], moves, slack=0)
        emit.barrier()
        _spread(products[cut:], reads)

    def _fetches(self, step: Step) -> list[Piece]:
        return [load for o in self.operands for unit in o.fetch.fetches(step) for load in unit]

    def _stores(self) -> list[Piece]:
        return [each for o in self.operands for unit in o.fetch.stores() for each in unit]

    def _moves(self, ahead: Step) -> list[Piece]:
        """Each unit goes to the LDS, and its registers are filled again."""
        return [
            each
            for o in self.operands
            for stores, fetches in zip(o.fetch.stores(), o.fetch.fetches(ahead), strict=True)
            for each in (*stores, *fetches)
        ]

    def _reads(self, step: int) -> list[Piece]:
        return [read for o in self.operands for read in o.reads(step, step % 2)]


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
