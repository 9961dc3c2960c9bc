"""`spread`: others stand under the computing, and none overwrites what is still to be used."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore

from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.main_loop.order.instruction_order import Piece, spread
from mfmadsl.passes.tir.expression import elements_of, loads_of

HELD, SUMS = (tirx.decl_buffer((64,), "float32", name, scope="local") for name in ("held", "sums"))
TILE = tirx.decl_buffer((64,), "float32", "tile", scope="shared")


def i32(number: int) -> Any:
    return tirx.const(number, "int32")


def read(register: int) -> Piece:
    return Piece((BufferStore(HELD, BufferLoad(TILE, [i32(register)]), [i32(register)]),))


def use(register: int) -> BufferStore:
    return BufferStore(SUMS, BufferLoad(HELD, [i32(register)]), [i32(register)])


@pytest.mark.parametrize("seed", range(30))
def test_a_fragment_is_read_anew_after_its_last_use(seed: int) -> None:
    draw = random.Random(seed)
    computing = [use(draw.randrange(12)) for _ in range(draw.randrange(1, 20))]
    others = [read(n) for n in draw.sample(range(12), draw.randrange(1, 12))]
    out = spread(computing, others, draw.randrange(4), MatrixInstructions({}))
    assert [s for s in out if s in computing] == computing
    assert sorted(map(str, out)) == sorted(
        [*map(str, computing), *(str(s) for piece in others for s in piece.statements)]
    )
    filled: set[int] = set()
    for statement in out:
        assert isinstance(statement, BufferStore)
        if statement.buffer.same_as(HELD):
            filled |= set(elements_of(statement.indices[0]))
        else:
            (load,) = loads_of(statement.value)
            assert filled.isdisjoint(elements_of(load.indices[0]))


def test_what_overwrites_nothing_is_spread_evenly() -> None:
    computing = [use(n) for n in range(4)]
    others = [read(n) for n in range(40, 44)]
    out = spread(computing, others, 0, MatrixInstructions({}))
    assert [s in computing for s in out] == [False, True] * 4
