"""Reading the tile that a TensorIntrin computes off its description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.s_tir import SBlockRealize, Schedule, TensorIntrin
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import For, PrimFunc

from mfmadsl.argument import check_type, described
from mfmadsl.schedule.error import ScheduleError


@dataclass(frozen=True)
class IntrinTile:
    """m x n x k of one instruction and the lanes that run it."""

    m: int
    n: int
    k: int
    lanes: int


def tensor_intrinsic(intrinsic: str | TensorIntrin, argument: str) -> TensorIntrin:
    """The TensorIntrin for a name; ScheduleError, naming the argument, if none is registered."""
    if isinstance(intrinsic, TensorIntrin):
        return intrinsic
    check_type(argument, intrinsic, str, "a TensorIntrin or the name of one")
    # TVM takes UTF-8, of which a str may be none.
    found: TensorIntrin | None = (
        TensorIntrin.get(intrinsic, allow_missing=True) if intrinsic.isprintable() else None
    )
    if found is None:
        raise ScheduleError(
            f"{argument}: no TensorIntrin is registered as {described(intrinsic)}; "
            "take the name from a generated module, which registers it"
        )
    return found


def registered_name(intrinsic: str | TensorIntrin, argument: str) -> str:
    """The name that `tensorize` takes; a TensorIntrin object is registered under one."""
    found = tensor_intrinsic(intrinsic, argument)
    if isinstance(intrinsic, str):
        return intrinsic
    name = f"mfmadsl.{argument}"  # tensorize looks it up at once: the next one may overwrite it
    TensorIntrin.register(name, found.desc, found.impl, override=True)
    return name


def tile_of(intrinsic: str | TensorIntrin, argument: str) -> IntrinTile:
    """The tile of a compute intrinsic: the extents of its description's three loops."""
    description = tensor_intrinsic(intrinsic, argument).desc
    extents = loop_extents(description)
    if len(extents) != 3:
        raise ScheduleError(
            f"{argument}: a compute intrinsic has three loops (i, j, k), "
            f"{intrinsic!r} has {len(extents)}"
        )
    lanes = description.params[2].shape[0]
    m, n, k = extents
    return IntrinTile(m, n, k, int(lanes))


def init_loop(sch: Schedule, init: SBlockRV, extents: Sequence[int]) -> LoopRV:
    """The outermost loop of the block that sets a tile of these extents to zero.

    TVM leaves out loops of one value there, which descriptions have: they are put back.
    """
    loops = sch.get_loops(init)
    found: SBlockRV | LoopRV = init
    for extent in reversed(extents):
        found = loops.pop() if extent > 1 else sch.add_unit_loop(found)
    assert isinstance(found, LoopRV)
    return found


def loop_extents(function: PrimFunc) -> list[int]:
    """The extents of the loop nest inside a PrimFunc's root block."""
    extents = []
    assert isinstance(function.body, SBlockRealize)
    statement = function.body.block.body
    while isinstance(statement, For):
        extents.append(int(statement.extent))
        statement = statement.body
    return extents
