"""A loop's tiles are its own: whoever else reaches one would see other contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm import tirx
from tvm.tirx import AttrStmt, BufferLoad, BufferStore, For, ForKind, IfThenElse, PrimFunc, SeqStmt

from mfmadsl.passes.main_loop.moves.checks import check_buffers
from mfmadsl.passes.tir.error import NotUnderstoodError
from tests.passes.main_loop.analysis.test_refused_loops import (
    LANE,
    OTHER,
    OUT,
    TILE,
    A,
    M,
    copy,
    multiply,
    read,
    taken,
)

AROUND: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda use: use,
    "a loop": lambda use: For(M, 0, 4, ForKind.SERIAL, use),
    "a branch": lambda use: IfThenElse(LANE < 32, use, None),
    "another branch": lambda use: IfThenElse(LANE < 32, BufferStore(OUT, 0.0, [LANE]), use),
    "an attribute": lambda use: AttrStmt(LANE, "pragma", tirx.const(1, "int32"), use),
    "all of them": lambda use: For(M, 0, 4, ForKind.SERIAL, IfThenElse(LANE < 32, use, None)),
}
"""Where a use of a tile may stand outside of the loop."""


def checked(*before: Any) -> None:
    main = taken(copy(), read(), multiply())
    check_buffers(main, PrimFunc([A, OUT], SeqStmt([*before, main.loop])))


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("use", [BufferStore(TILE, BufferLoad(OTHER, [LANE]), [LANE]),
                                 BufferStore(OTHER, BufferLoad(TILE, [LANE]), [LANE])],
                         ids=["written", "read"])  # fmt: skip
def test_a_tile_that_is_used_outside_of_the_loop(around: str, use: Any) -> None:
    with pytest.raises(NotUnderstoodError, match="`tile` is used outside of it, too"):
        checked(AROUND[around](use))


@pytest.mark.parametrize("around", AROUND)
def test_other_buffers_may_be_used(around: str) -> None:
    checked(AROUND[around](BufferStore(OTHER, BufferLoad(OTHER, [LANE]), [LANE])))
