"""The grid: which tile a workgroup takes, such that neighbours share what is in a cache.

Workgroups go to the dies of a chip in turn, and each die has an L2 of its own. So tiles are dealt
out such that a die gets consecutive ones, and consecutive tiles form blocks of `group` rows: they
share their columns while the rows stay in the cache. A loop of the kernel is annotated with it:

    mfmadsl.grid.group        rows of tiles (blockIdx.y) of a block of tiles
    mfmadsl.grid.dies         among which workgroups go in turn
    mfmadsl.grid.workgroups   so many at most, which then walk over the tiles
    mfmadsl.grid.blocks_at_a_time
                              that a die gets, in turn: where some parts of the tiles are more work
                              than others, as with experts, each die gets of all. Pairs of dies
                              begin at different parts: at any time some read much, and others
                              little; what both of a pair read comes from memory once
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import AttrStmt, Bind, Expr, For, ForKind, PrimFunc, SeqStmt, Stmt, Var

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.annotation import BLOCKS_AT_A_TIME, DIES, GROUP, WORKGROUPS
from mfmadsl.passes.tir.expression import constant, i32, substitute
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk

_NAMES = {
    GROUP: "group", DIES: "dies", WORKGROUPS: "workgroups", BLOCKS_AT_A_TIME: "blocks_at_a_time",
}  # fmt: skip

_TOGETHER = 2  # dies that begin at one part of the tiles


@dataclass(frozen=True)
class LaunchGrid:
    """What the annotations say."""

    group: int = 1
    dies: int = 1
    workgroups: int | None = None
    blocks_at_a_time: int | None = None


def grid_of(function: PrimFunc) -> LaunchGrid | None:
    """What a loop of the kernel is annotated with; None if none is."""
    found: dict[str, int] = {}

    def loop(node: For) -> None:
        annotations = node.annotations or {}
        found.update({name: int(annotations[name]) for name in _NAMES if name in annotations})

    walk(function.body, (For, loop))
    return LaunchGrid(**{_NAMES[name]: value for name, value in found.items()}) if found else None


def regrid(function: PrimFunc, grid: LaunchGrid) -> PrimFunc:
    """The device function with all its tiles along blockIdx.x, in the order of the grid."""
    axes: dict[str, AttrStmt] = {}

    def axis(node: AttrStmt) -> Stmt:
        tag = str(node.node.thread_tag) if node.attr_key == "thread_extent" else ""
        if not tag.startswith("blockIdx"):
            return node
        axes[tag[-1]] = node
        return node.body

    body = mapped(function.body, (AttrStmt, axis))
    if "x" not in axes:
        return function
    extents = {name: _narrow(axes[name].value) if name in axes else i32(1) for name in "xyz"}
    number, own = Var("tile", "int32"), _narrow(axes["x"].node.var)
    binds, places = _places(number, extents, grid)
    taken = {
        axes[name].node.var: _as(places[name], str(axes[name].node.var.ty.dtype)) for name in axes
    }
    body = substitute(body, taken)
    tiles = _product(extents.values())
    together = None
    if grid.blocks_at_a_time is not None:
        together = extents["x"] * _least(extents["y"], i32(grid.group)) * grid.blocks_at_a_time
    if grid.workgroups is None:
        count = tiles
        placed = [Bind(number, _tile_of(own, tiles, grid.dies, together)), *binds, body]
        statement: Stmt = SeqStmt(placed)
    else:
        count = _least(tiles, i32(grid.workgroups))
        again = Var("round", "int32")
        number_of = _tile_of(own + again * count, tiles, grid.dies, together)
        # The next tile goes where this one was.
        placed = [Bind(number, number_of), *binds, body, device.barrier()]
        rounds = _quotient(tiles - own + (count - 1), count)
        statement = For(again, i32(0), rounds, ForKind.SERIAL, SeqStmt(placed))
    first = axes["x"]
    whole = AttrStmt(first.node, first.attr_key, _as(count, str(first.value.ty.dtype)), statement)
    return with_body(function, whole)


def _places(
    number: Var, extents: dict[str, Expr], grid: LaunchGrid
) -> tuple[list[Bind], dict[str, Expr]]:
    """Where a tile is on each axis, by its number; each quotient is computed once."""
    binds: list[Bind] = []

    def let(name: str, value: Expr) -> Expr:
        if constant(value) is not None:
            return value
        variable = Var(name, "int32")
        binds.append(Bind(variable, value))
        return variable

    inside: Expr = number
    columns, rows = let("columns", extents["x"]), let("rows", extents["y"])
    layer = let("layer", columns * rows)
    if constant(extents["z"]) == 1:
        z = i32(0)
    else:
        z = let("z", _quotient(number, layer))
        inside = let("inside", number - z * layer)
    group = let("group", _least(rows, i32(grid.group)))  # columns times it has room in 32 bits
    block = let("block", _quotient(inside, columns * group))
    left = let("left", inside - block * (columns * group))
    height = let("height", _least(rows - block * group, group))
    x = let("column", _quotient(left, height))
    y = let("row", block * group + (left - x * height))
    return binds, {"x": x, "y": y, "z": z}


def _tile_of(number: Expr, tiles: Expr, dies: int, together: Expr | None) -> Expr:
    """The tile of a workgroup, both by their numbers: a die has consecutive tiles, or in turn so
    many `together`, and of those that are left its part."""
    if together is None or dies == 1:
        return _by_die(number, tiles, dies)
    whole = tirx.floordiv(tiles, together * dies) * (together * dies)
    die, place = tirx.floormod(number, i32(dies)), tirx.floordiv(number, i32(dies))
    turn = _quotient(place, together)
    turns = tirx.max(_quotient(whole, together * dies), 1)
    first = _quotient((die - tirx.floormod(die, i32(_TOGETHER))) * turns, i32(dies))
    passed = _quotient(turn, turns)  # 0, but of those that are left
    from_first = tirx.truncmod(turn + first, turns) + passed * turns
    dealt: Expr = (from_first * dies + die) * together + (place - turn * together)
    if constant(tiles) is not None and constant(tiles) == constant(whole):
        return dealt
    return _least(dealt, whole) + _by_die(tirx.max(number - whole, 0), tiles - whole, dies)


def _by_die(number: Expr, tiles: Expr, dies: int) -> Expr:
    """The tile of a workgroup, both by their numbers, such that a die has consecutive tiles."""
    if dies == 1:
        return number
    # The first dies get one tile more, where they do not come out even.
    each, more = tirx.floordiv(tiles, i32(dies)), tirx.floormod(tiles, i32(dies))
    die, place = tirx.floormod(number, i32(dies)), tirx.floordiv(number, i32(dies))
    return die * each + _least(die, more) + place


def _product(extents: Iterable[Expr]) -> Expr:
    total: Expr = i32(1)
    for extent in extents:
        total = total * extent
    return total


def _narrow(extent: Expr) -> Expr:
    return _as(extent, "int32")


def _as(value: Expr, dtype: str) -> Expr:
    return value if str(value.ty.dtype) == dtype else tirx.Cast(dtype, value)


def _quotient(a: Expr, b: Expr) -> Expr:
    """The quotient of numbers that are not negative: rounding towards zero takes no remainder."""
    return tirx.truncdiv(a, b)


def _least(a: Expr, b: Expr) -> Expr:
    return tirx.min(a, b)
