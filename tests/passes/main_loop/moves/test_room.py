"""Threads that have nothing to copy into a tile copy behind it, if the LDS has room for that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tvm import tirx
from tvm.tirx import AllocBuffer, BufferLoad, PrimFunc, SeqStmt

from mfmadsl.model import architecture
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.main_loop.moves.room import tiles_with_room
from tests.passes.main_loop.analysis.test_refused_loops import A, copy, multiply, read, taken

CHIP = architecture("gfx942")
LANE = tirx.Var("lane", "int32")
TILE = tirx.decl_buffer((200,), "float16", "tile", scope="shared")
WITH_ROOM = 2 * 2048
"""Bytes of the tile with room for all of 256 threads."""


def lengths(spare: int, stages: int = 2, place: Any = LANE) -> list[int]:
    """How long tiles with room are beside so many bytes of the LDS, of 200 halves that 256 threads
    copy."""
    other = tirx.decl_buffer((spare,), "int8", "other", scope="shared")
    main = taken(copy(), read(), multiply())
    main = replace(main, allocations=(AllocBuffer(TILE),))
    function = PrimFunc([A], SeqStmt([AllocBuffer(TILE), AllocBuffer(other), main.loop]))
    element = Element(TILE, place, BufferLoad(A, [LANE]), (), guards=(LANE < 200,))
    rooms = tiles_with_room([element], main, function, {"lane": 256}, stages, CHIP)
    return [int(room.buffer.shape[0]) for room in rooms.values()]


@pytest.mark.parametrize("stages", [2, 3])
def test_there_is_room_as_long_as_all_of_it_fits_into_the_lds(stages: int) -> None:
    left = CHIP.lds_bytes - stages * WITH_ROOM
    assert lengths(left, stages) == [2048]
    assert lengths(left + 1, stages) == []


def test_one_stage_has_room_if_as_many_workgroups_fit() -> None:
    """Three of them, of 400 bytes and of what is beside them."""
    most = CHIP.lds_bytes // 3 - WITH_ROOM
    assert lengths(most, 1) == [2048]
    assert lengths(most + 1, 1) == []
