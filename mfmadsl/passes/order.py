"""The order of instructions: memory goes under matrix instructions, and nothing waits.

LLVM would gather the loads in front and wait for them, so it is told to keep this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tvm.tirx import BufferStore, Stmt

from mfmadsl.passes import device
from mfmadsl.passes.matrix import is_matrix

SLACK = 2
"""Matrix instructions between the last read of fragments and their first use, where there are so
many: an LDS read takes about as long as two of 32x32."""


@dataclass(frozen=True)
class Piece:
    """Statements that stay together; `cost` is about how many instructions they become."""

    statements: tuple[Stmt, ...]
    cost: int = 1


def one(statement: Stmt) -> Piece:
    """A piece of one statement."""
    return Piece((statement,))


def spread(
    computing: Sequence[BufferStore], others: Sequence[Piece], slack: int = SLACK
) -> list[Stmt]:
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
        if is_matrix(statement.value):
            found.append(device.keep_order())
    return found + [statement for piece in waiting for statement in piece.statements]


def split(computing: Sequence[BufferStore], reads: Sequence[Piece]) -> int:
    """Where the reads of the next turn may begin: so many of the computing stand before them."""
    tail = min(len(computing) // 2, ceil(len(reads) / 2) + SLACK)
    return len(computing) - tail
