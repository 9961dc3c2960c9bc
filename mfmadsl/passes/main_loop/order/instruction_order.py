"""The order of instructions: memory goes under matrix instructions, and nothing waits.

LLVM would gather the loads in front and wait for them, so it is told to keep this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tvm.tirx import BufferStore, Stmt

from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.tir import device

_LONG = 32  # cycles of a matrix instruction of which two take about as long as a read of the LDS


@dataclass(frozen=True)
class Piece:
    """Statements that stay together; `cost` is about how many instructions they become."""

    statements: tuple[Stmt, ...]
    cost: int = 1


def one(statement: Stmt) -> Piece:
    """A piece of one statement."""
    return Piece((statement,))


@dataclass(frozen=True)
class Pace:
    """How many matrix instructions take the time of one long one, of 32 cycles on most chips."""

    short: int = 1

    @property
    def slack(self) -> int:
        """Matrix instructions between the last read of fragments and their first use, where there
        are so many."""
        return 2 * self.short

    @property
    def put_slack(self) -> int:
        """Those between the last put and the barrier that waits for it."""
        return 2 * self.short - 1

    def split(self, computing: Sequence[BufferStore], reads: Sequence[Piece]) -> int:
        """Where the next iteration's reads may begin: so many of the computing stand before them.

        A long instruction has room for two reads.
        """
        tail = min(len(computing) // 2, ceil(len(reads) * self.short / 2) + self.slack)
        return len(computing) - tail


def pace_of(computing: Sequence[BufferStore], instructions: MatrixInstructions) -> Pace:
    """The pace of what a register step computes."""
    found = [instructions.time(s.value) for s in computing if instructions.has(s.value)]
    return Pace(max(1, min(2, _LONG // max(found, default=_LONG))))


def spread(
    computing: Sequence[BufferStore], others: Sequence[Piece], slack: int,
    instructions: MatrixInstructions,
) -> list[Stmt]:  # fmt: skip
    """The others evenly before the computing; none before its last `slack`, if there is room."""
    found: list[Stmt] = []
    waiting, spent = list(others), 0.0
    room, total = max(1, len(computing) - slack), sum(piece.cost for piece in others)
    for index, statement in enumerate(computing):
        while waiting and spent + waiting[0].cost / 2 <= total * (index + 1) / room:
            piece = waiting.pop(0)
            found += piece.statements
            spent += piece.cost
        found.append(statement)
        if instructions.has(statement.value):
            found.append(device.keep_order())
    return found + [statement for piece in waiting for statement in piece.statements]
