"""What is computed on its way into the LDS, before the barrier behind which it is put there.

With one tile an operand in the LDS, all waves put the next tile at the same time, under a few
matrix instructions: there is no room for more than the stores. What has to be dequantised or
converted goes into registers first, word by word under the register steps before the last one, and
waits there. Its loads are an iteration's first ones, and none of them comes late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tvm import tirx
from tvm.tirx import Buffer, Expr, Stmt

from mfmadsl.passes.main_loop.moves.put import Put
from mfmadsl.passes.main_loop.order.instruction_order import Piece
from mfmadsl.passes.tir import device

Computed = Mapping[int, Buffer]
"""For each put that is computed ahead, by its `id`, the registers with its words."""

NOTHING: Computed = MappingProxyType({})


def is_computed(put: Put) -> bool:
    """Whether it may be computed ahead: it is more than a copy, and of whole words."""
    return not put.is_plain and put.words > 0


def needed_by_computed(puts: Sequence[Put]) -> set[int]:
    """The fetches of what may be computed ahead, by their `id`."""
    return {id(fetch) for put in puts if is_computed(put) for fetch in put.fetches}


def registers_of_computed(puts: Sequence[Put]) -> Computed:
    """Registers for the words of those that may be computed ahead."""
    return {
        id(put): tirx.decl_buffer((put.words,), "int32", "computed", scope="local")
        for put in puts
        if is_computed(put)
    }


def pieces_of_computed(
    puts: Sequence[Put], k: Expr, into: Computed, is_last: bool, wait: Stmt
) -> list[Piece]:
    """The words that these put of iteration `k`, once what they need is there: the first do `wait`.

    What was loaded is hidden from LLVM up to here: it would take it apart where it was asked for,
    and wait there.
    """
    found: list[Piece] = []
    before: list[Stmt] = [wait]
    hidden: set[int] = set()
    for put in puts:
        for fetch in put.fetches:
            if id(fetch) not in hidden and not fetch.is_fixed:
                before += device.renewed_words(fetch.registers)
                hidden.add(id(fetch))
        parts = put.computed_into(into[id(put)], k, is_last)
        for part in parts:
            found.append(Piece((*before, *part), (put.cost - 1) // len(parts)))
            before = []
    return found


def share_of(pieces: Sequence[Piece], steps: range, step: int) -> Sequence[Piece]:
    """Those of the pieces that a register step has, where these steps share them."""
    if step not in steps:
        return ()
    number, count = steps.index(step), len(steps)
    first, end = (len(pieces) * n // count for n in (number, number + 1))
    return pieces[first:end]
