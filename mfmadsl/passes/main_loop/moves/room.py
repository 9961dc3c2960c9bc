"""Room in the LDS for threads that have nothing to copy.

Where a tile is no whole number of copies for all threads, the last copy stands in a branch. That is
in the way: LLVM moves the loads into it, too, where others wait for them. So all threads copy: what
some of them load lies past the end of memory, and their zeros go behind the tile, where nobody
reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from tvm import tirx
from tvm.tirx import AllocBuffer, Buffer, Expr, PrimFunc

from mfmadsl.model import Architecture
from mfmadsl.passes.main_loop.analysis.parsed import MainLoop
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.tir.expression import (
    NotNumbersError,
    constant,
    known_bytes,
    numbers,
    scope_of,
)
from mfmadsl.passes.tir.walk import walk

_GROUP = 2048  # elements, of which a tile with room has a multiple, for swizzles to stay within it


@dataclass(frozen=True)
class Room:
    """A tile with room; `behind` says that waves that have nothing to copy are told to do so there,
    and else their places lie there as they are."""

    buffer: Buffer
    behind: bool


def tiles_with_room(
    elements: Sequence[Element], main: MainLoop, function: PrimFunc, threads: Mapping[str, int],
    stages: int, chip: Architecture,
) -> dict[int, Room]:  # fmt: skip
    """For each tile of the loop that can have room, by its handle, one that has it.

    There is none where the copies of other threads would meet the tile, but those of whole waves
    are moved behind it if the LDS has the bytes; and of a loop of one stage where fewer workgroups
    would fit into the LDS: those of several do not hide what a branch costs them, for LLVM waits
    before it for all that is under way. `threads` says how many values each thread index has, by
    its name.
    """
    copied: dict[int, list[Element]] = {}
    for each in elements:
        copied.setdefault(each.buffer.__chandle__(), []).append(each)
    found: dict[int, Room] = {}
    for handle in (a.buffer.__chandle__() for a in main.allocations):
        those = copied.get(handle, [])
        if not any(each.guards for each in those):
            continue
        for behind in (False, True):
            asked = [_behind(each) for each in those] if behind else those
            if (length := _length(asked, threads)) is not None:
                tile = those[0].buffer
                large = tirx.decl_buffer((length,), tile.dtype, tile.name, scope="shared")
                found[handle] = Room(large, behind)
                break
    tiles = {each.buffer.__chandle__(): each.buffer for each in elements}
    before = _bytes(tiles.values())
    others = _bytes(_shared(function)) - before
    groups = chip.lds_bytes // max(1, others + stages * before) if stages == 1 else 1
    for rooms in (found, {handle: room for handle, room in found.items() if not room.behind}):
        after = _bytes(
            rooms[handle].buffer if handle in rooms else tile for handle, tile in tiles.items()
        )
        if (others + stages * after) * max(1, groups) <= chip.lds_bytes:
            return rooms
    return {}


def _length(elements: Sequence[Element], threads: Mapping[str, int]) -> int | None:
    """How long a tile has to be for all threads to copy; None if they would meet what is wanted."""
    old = constant(elements[0].buffer.shape[0])
    if old is None:
        return None
    shape = tuple(threads.values())
    values = dict(zip(threads, np.indices(shape), strict=True))
    filled, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in elements:
        try:
            place = np.broadcast_to(numbers(each.place, values), shape)
            wanted = np.ones(shape, bool)
            for guard in each.guards:
                wanted &= _holds(guard, values)
        except NotNumbersError:
            return None
        filled.append(place[wanted])
        others.append(place[~wanted])
    if np.isin(np.concatenate(others), np.concatenate(filled)).any():
        return None
    most = max(old, int(np.concatenate([*filled, *others]).max()) + 1)
    return -(-most // _GROUP) * _GROUP


def _behind(element: Element) -> Element:
    """The element, which threads that have nothing to copy put behind the tile, if the first ones
    are those that have something."""
    old = constant(element.buffer.shape[0])
    first = [g for g in element.guards if isinstance(g, tirx.LT) and isinstance(g.a, tirx.Var)]
    if old is None or len(first) != len(element.guards):
        return element
    away = [tirx.floordiv(g.a, g.b) * tirx.const(old, str(g.a.ty.dtype)) for g in first]
    return replace(element, place=sum(away, element.place))


def _holds(guard: Expr, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """For which threads a comparison of two numbers holds."""
    if not isinstance(guard, tirx.LT):
        raise NotNumbersError(str(guard))
    left, right = numbers(guard.a, values), numbers(guard.b, values)
    return left < right


def _shared(function: PrimFunc) -> list[Buffer]:
    found: list[AllocBuffer] = []
    walk(function.body, (AllocBuffer, found.append))
    return [a.buffer for a in found if scope_of(a.buffer) == "shared"]


def _bytes(buffers: Iterable[Buffer]) -> int:
    return sum(map(known_bytes, buffers))


def copied_by_all(element: Element, rooms: Mapping[int, Room]) -> Element:
    """The element as all threads copy it, if its tile has room."""
    room = rooms.get(element.buffer.__chandle__())
    if room is None:
        return element
    place = _behind(element).place if room.behind else element.place
    inner = (*element.inner, *element.guards)
    return replace(element, buffer=room.buffer, place=place, inner=inner, guards=())
