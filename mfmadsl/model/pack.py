"""Several instructions in a row as one of a deeper tile: k-packing.

A product does not change when A and B are permuted along k alike. So a lane may take for its
registers whatever lies together in memory, and one wide read may feed several instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from mfmadsl.argument import check_integer
from mfmadsl.error import ArgumentError
from mfmadsl.model.intrinsic import Intrinsic, Operand
from mfmadsl.model.layout import Layout

OPERAND_REGISTERS = 256
"""The vector registers that an instruction can name (CDNA3 ISA, section 3.6)."""


@dataclass(frozen=True)
class Packed:
    """C[m, n] += A[m, k] x B[k, n], done by `count` instructions `intrinsic` one after another.

    `a` and `b` are the operands of the deeper tile, of which instruction p takes in each lane as
    many registers as its own operand has, from p times that number on. `order` says for each k
    of the tile which instruction multiplies it and as which k of its own. The accumulator is that
    of one instruction.
    """

    intrinsic: Intrinsic
    count: int
    a: Operand
    b: Operand
    order: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """The name of the instruction, with how many of them there are if they are several."""
        return self.intrinsic.name + (f"_k{self.count}" if self.count > 1 else "")

    @property
    def k(self) -> int:
        """The extent of k of the tile."""
        return self.count * self.intrinsic.k


def packed(intrinsic: Intrinsic, count: int) -> Packed:
    """`count` instructions as one of `count` times the k, which lies together in each lane.

    The k of the tile goes first over the lanes that hold row 0 of A, in order, then over the
    instructions, then over the registers of the lane: where a lane holds a single row of A, all
    that it holds are neighbours along k. B follows the same order, whatever its own layout is. One
    instruction keeps its k as they are.

    Raises ArgumentError for less than one instruction, for more than the registers can feed, and
    for several that are sparse, scaled or of several blocks.
    """
    count = check_integer("k_pack", count)
    if count < 1:
        raise ArgumentError(f"k_pack: is a number of instructions from 1 on, not {count}")
    if count > 1:
        _check_packable(intrinsic, count)
    return _packed(intrinsic, count)


def _check_packable(intrinsic: Intrinsic, count: int) -> None:
    several = f"multiplies {intrinsic.blocks} blocks at once" if intrinsic.blocks > 1 else ""
    kind = "is sparse" if intrinsic.sparse else "is scaled" if intrinsic.scales else several
    if kind:
        raise ArgumentError(
            f"k_pack: {intrinsic.name} {kind}, so that {count} of it are no deeper tile; "
            "only k_pack=1 can be"
        )
    for operand in (intrinsic.a, intrinsic.b):
        registers = count * operand.layout.elements_per_lane * operand.type.bits // 32
        if registers > OPERAND_REGISTERS:
            raise ArgumentError(
                f"k_pack: {count} of {intrinsic.name} take {registers} registers for "
                f"`{operand.name}`, but a lane has {OPERAND_REGISTERS}"
            )


@cache
def _packed(intrinsic: Intrinsic, count: int) -> Packed:
    if count == 1:
        natural = tuple((0, k) for k in range(intrinsic.k))
        return Packed(intrinsic, 1, intrinsic.a, intrinsic.b, natural)
    order = _order(intrinsic.a.layout, count)
    a, b = intrinsic.a.layout, intrinsic.b.layout
    of_a = tuple(_moved(a, p, row, k) for row in range(a.rows) for p, k in order)
    of_b = tuple(_moved(b, p, k, column) for p, k in order for column in range(b.columns))
    return Packed(
        intrinsic,
        count,
        replace(
            intrinsic.a,
            layout=Layout(a.rows, len(order), a.lanes, count * a.elements_per_lane, of_a),
        ),
        replace(
            intrinsic.b,
            layout=Layout(len(order), b.columns, b.lanes, count * b.elements_per_lane, of_b),
        ),
        order,
    )


def _order(a: Layout, count: int) -> tuple[tuple[int, int], ...]:
    """(number of the instruction, its k) for each k of the tile."""
    groups: dict[int, list[int]] = {}  # the k of row 0 that a lane holds, by register
    for k in sorted(range(a.columns), key=lambda k: a.slot(0, k)):
        groups.setdefault(a.slot(0, k)[0], []).append(k)
    return tuple((p, k) for held in groups.values() for p in range(count) for k in held)


def _moved(layout: Layout, instruction: int, row: int, column: int) -> tuple[int, int]:
    """(lane, register) of an element of one of several instructions."""
    lane, register = layout.slot(row, column)
    return lane, instruction * layout.elements_per_lane + register
