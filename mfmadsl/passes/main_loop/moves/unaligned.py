"""Neighbours that are not aligned to words: the aligned words around them, and what these lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.tirx import Expr

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.moves.address import SPAN_LIMIT, Address
from mfmadsl.passes.main_loop.moves.edge import Edges
from mfmadsl.passes.main_loop.moves.element import MemorySource
from mfmadsl.passes.main_loop.moves.named import Let
from mfmadsl.passes.main_loop.moves.next_lane import ROW, has_none, lanes_of_row
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import WORD, bytes_of, constant, i32, multiple_of, parted
from mfmadsl.passes.tir.linear import largest


@dataclass(frozen=True)
class Tail:
    """The last word of a buffer that has only a part of it: loads do not give such a part.

    Its `value` is loaded by itself, once, and put at its `place`, a lane's offset, where an
    iteration may reach it; `always` says that others than the last iteration may.
    """

    value: Expr
    place: Expr
    always: bool


@dataclass(frozen=True)
class Behind:
    """A word that the next lane has loaded, but for those that are `alone`, which load it at their
    `offset`. `last_of_rows` says that these are the last ones of the rows of DPP."""

    offset: Expr
    alone: Expr
    last_of_rows: bool


def aligned(run: Sequence[MemorySource], address: Address, let: Let) -> tuple[Address, Expr | None]:
    """The address with a base of whole words, and what of that is left for the lanes, if any."""
    if multiple_of(address.step) % WORD:
        raise NotUnderstoodError(
            f"`{run[0].buffer.name}` is aligned otherwise from iteration to iteration"
        )
    if not multiple_of(address.origin) % WORD:
        return address, None
    low = let("low", tirx.Cast("int32", address.origin & tirx.const(3, "int64")))
    return replace(address, origin=address.origin - tirx.Cast("int64", low)), low


def tail_of(run: Sequence[MemorySource], address: Address, loop: Loop, let: Let) -> Tail | None:
    """The last word of the buffer, or None if there are only whole words."""
    buffer, element = run[0].buffer, run[0].size
    size = bytes_of(buffer)
    number = constant(size)
    if number is not None and number % WORD == 0:
        return None
    whole = size & tirx.const(-WORD, "int64")
    value: Expr = i32(0)
    for byte in range(0, WORD - element, element):
        part = device.call(
            "int32", f"buffer.load.{device.KINDS[element]}", buffer.data, whole, size, i32(byte),
            i32(0),
        )  # fmt: skip
        part = tirx.shift_left(part, i32(8 * byte)) if byte else part
        value = value | part if byte else part
    place = whole - address.origin
    if number is None or number >= SPAN_LIMIT:  # a place out of reach is that of no whole word
        place = tirx.min(place, tirx.const(SPAN_LIMIT - 1, "int64"))
    return Tail(
        let("tail", value),
        let("tail_place", tirx.Cast("int32", place)),
        number is None or not all(_is_whole_before_last(s, number, loop) for s in run),
    )


def _is_whole_before_last(source: MemorySource, size: int, loop: Loop) -> bool:
    """Whether only the last iteration may need the last word."""
    most = largest(source.place, source.conditions, loop.before_last)
    return most is not None and (most + 1) * source.size <= size // WORD * WORD


def behind_of(
    run: Sequence[MemorySource], own: Expr, offset: Expr, shift: Expr, edges: Edges, loop: Loop,
    let: Let,
) -> Behind | None:  # fmt: skip
    """The word behind neighbours, where the next lane has it; `own` is a lane's offset from the
    base before it was aligned. Nobody needs it where the neighbours are whole words."""
    length = len(run) * run[0].size
    lanes = 0 if edges.always else lanes_of_row(own, length, loop)
    alone = has_none(lanes, edges.fixed, loop, own) if lanes else None
    if alone is None:
        return None
    is_needed = tirx.And(alone, (shift & i32(WORD - 1)) > 0)
    place = device.select(is_needed, offset + i32(length), i32(device.PAST_THE_END))
    of_dpp = lanes == ROW and isinstance(alone, tirx.EQ)
    return Behind(let("behind", place), let("alone", alone) if not of_dpp else alone, of_dpp)


def low_bits(offset: Expr) -> Expr:
    """An offset but for whole words: one that others share, which lie some words further."""
    moving, number = parted(offset)
    return moving + i32(number % WORD) if number else offset
