"""The order of instructions: memory goes under matrix instructions, and nothing waits.

LLVM would gather the loads in front and wait for them, so it is told to keep this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm.tirx import BufferStore, Stmt

from mfmadsl.passes.main_loop.analysis.halves import Element, written
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import elements_of, loads_of, scope_of

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

        The LDS serves one read of each SIMD while a long instruction takes its 32 cycles.
        """
        tail = min(len(computing) // 2, len(reads) * self.short + self.slack)
        return len(computing) - tail


def pace_of(computing: Sequence[BufferStore], instructions: MatrixInstructions) -> Pace:
    """The pace of what a register step computes."""
    found = [instructions.time(s.value) for s in computing if instructions.has(s.value)]
    return Pace(max(1, min(2, _LONG // max(found, default=_LONG))))


def after_use(computing: Sequence[BufferStore], others: Sequence[Piece]) -> list[tuple[int, Piece]]:
    """The others, each with how much of the computing comes before it, those with the least first.

    That is what still uses a register that it writes: a fragment of an iteration before.
    """
    places = {each: n for n, piece in enumerate(others) for each in _registers(piece)}
    arrays = {handle for handle, _ in places}
    first = [0] * len(others)
    for number, statement in enumerate(computing, 1):
        for load in loads_of(statement.value):
            handle = load.source.__chandle__()
            for element in elements_of(load.indices[0]) if handle in arrays else ():
                if (place := places.get((handle, element))) is not None:
                    first[place] = number
    return sorted(zip(first, others, strict=True), key=lambda pair: pair[0])


def _registers(piece: Piece) -> Iterator[Element]:
    """The registers that a piece writes."""
    for statement in piece.statements:
        if isinstance(statement, BufferStore) and scope_of(statement.buffer) == "local":
            yield from written(statement)


def spread(
    computing: Sequence[BufferStore], others: Sequence[Piece], slack: int,
    instructions: MatrixInstructions,
) -> list[Stmt]:  # fmt: skip
    """The others evenly before the computing; none before its last `slack`, if there is room.

    None overwrites a register before its last use.
    """
    found: list[Stmt] = []
    waiting, spent = after_use(computing, others), 0.0
    room, total = max(1, len(computing) - slack), sum(piece.cost for piece in others)
    for index, statement in enumerate(computing):
        due = total * (index + 1) / room
        while waiting and waiting[0][0] <= index and spent + waiting[0][1].cost / 2 <= due:
            _, piece = waiting.pop(0)
            found += piece.statements
            spent += piece.cost
        found.append(statement)
        if instructions.has(statement.value):
            found.append(device.keep_order())
    return found + [statement for _, piece in waiting for statement in piece.statements]
