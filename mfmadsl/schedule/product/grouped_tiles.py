"""A grouped product in tiles of rows: each tile has rows of one group, and finds them by itself.

The tiles of group after group follow one another. The lanes of a wave add up how many the groups
have, each lane those of one, so that a tile knows the group that it is in; those tiles that are
left, of as many as there may be, find no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import s_tir, te, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.analysis import get_sblock_access_region
from tvm.tirx import Buffer, BufferStore, Expr, For, IfThenElse, IterVar, PrimFunc, SeqStmt, Stmt

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.expression import i32
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.added_nest import again, element_wise, looped, renamed_block, unique
from mfmadsl.schedule.product.described import axes_of
from mfmadsl.schedule.product.grouped import GroupedProduct, Groups
from mfmadsl.schedule.product.memory import Extent
from mfmadsl.schedule.product.nest import Nest, block_names, buffers, nests, substitute
from mfmadsl.schedule.product.whole_tiles import Order, inside, whole_extents

_GRID = "blockIdx.y"


@dataclass(frozen=True)
class Tables:
    """What a tile of rows knows: its group, its first row, and the one after the last that it may
    have. `nests` compute them for each tile, of its `place` among the groups."""

    place: Buffer
    group: Buffer
    first: Buffer
    last: Buffer
    nests: tuple[Nest, ...]


@dataclass(frozen=True)
class TiledGroups:
    """A function with a product of tiles, [tile, row, column], in a block of its name, and the
    block `store` that puts rows where they belong; nothing computes the `tables` yet."""

    function: PrimFunc
    tiles: Extent
    store: str
    tables: Tables


def tiled_groups(found: GroupedProduct, block: tuple[int, int, int]) -> TiledGroups:
    """The function in tiles of so many rows, columns and k.

    Raises ScheduleError where whole tiles are more than a loop counts.
    """
    _, n, k = found.extents
    rows = block[0]
    tiles = tiles_of(found, rows)
    _, columns, depth = whole_extents((rows, n, k), block)
    taken = block_names(found.function)
    tables = tables_of(found, rows, tiles, taken)
    core = _core(found, (tiles, rows, columns, depth))
    a, b, result = core.params
    (product,) = nests(core)
    store = unique(f"{found.nest.name}_rows", taken)
    instead = [
        _rows_of_a(found, a, tables, unique("A_rows", taken)),
        _rows_of_b(found, b, tables, unique("B_groups", taken)),
        product.statement,
        rows_stored(found, result, tables, store, (tiles, rows, n)),
    ]
    function = in_tiles(found, instead, [a, b, result], tables)
    return TiledGroups(function, tiles, store, tables)


def tiles_of(found: Groups, rows: int) -> Extent:
    """The most tiles of so many rows that there may be; where there are no rows, none."""
    groups, m = found.extents[0], found.rows
    if isinstance(m, int):
        return m // rows + min(m, groups)
    return tirx.floordiv(m, rows) + tirx.min(m, groups)


def with_tables(function: PrimFunc, tables: Tables) -> PrimFunc:
    """A scheduled function in which each workgroup computes the tables of its tile."""

    def computed(loop: For) -> For:
        tag = None if loop.thread_binding is None else str(loop.thread_binding.thread_tag)
        if tag != _GRID:
            return loop
        own = []
        for nest in tables.nests:
            tile, *inner = nest.loops
            values = [substitute(v, {tile.loop_var: loop.loop_var})
                      for v in nest.realize.iter_values]  # fmt: skip
            own.append(again(inner, SBlockRealize(values, True, nest.block)))
        return For(
            loop.loop_var, loop.min, loop.extent, loop.kind, SeqStmt([*own, loop.body]),
            loop.thread_binding, loop.annotations,
        )  # fmt: skip

    return function.with_body(mapped(function.body, (For, computed)))


def tables_of(found: Groups, rows: int, tiles: Extent, taken: set[str]) -> Tables:
    """The tables of so many tiles of so many rows, in blocks of names that are not taken."""
    groups, m = found.extents[0], found.rows
    names = [unique(f"tile_{name}", taken) for name in ("place", "group", "first", "last")]
    local = [
        tirx.decl_buffer((tiles,), dtype, name, scope="local")
        for name, dtype in zip(names, ("int64", *["int32"] * 3), strict=True)
    ]
    ends = te.placeholder((groups,), name="ENDS", dtype="int32")
    place = te.placeholder((tiles,), name="PLACE", dtype="int64")

    def number(tile: Expr) -> Expr:
        return place[tile].astype("int32")

    group = te.compute((tiles,), lambda t: tirx.min(number(t), groups - 1), name=names[1])

    def first_row(tile: Expr) -> Expr:
        own, before = group[tile], (place[tile] >> 32).astype("int32")
        start = tirx.if_then_else(own > 0, ends[tirx.max(own - 1, 0)], tirx.const(0, "int32"))
        # Ends that decrease are no groups: even so, no row lies before the first.
        inside = tirx.max(start + (tile - before) * rows, 0)
        return tirx.if_then_else(number(tile) < groups, inside, m)

    def last_row(tile: Expr) -> Expr:
        own = group[tile]
        return tirx.if_then_else(own < groups - 1, tirx.min(ends[own], m), m)

    first = te.compute((tiles,), first_row, name=names[2])
    last = te.compute((tiles,), last_row, name=names[3])
    function = te.create_prim_func([ends, place, group, first, last])
    instead = dict(zip(function.params, (found.ends, *local), strict=True))
    own = (_of_buffers(nest, instead) for nest in nests(function))
    of_place, of_group, of_first, of_last = local
    places = _places(found.ends, of_place, (groups, m, rows))
    return Tables(of_place, of_group, of_first, of_last, (places, *own))


def _places(ends: Buffer, to: Buffer, numbers: tuple[int, Extent, int]) -> Nest:
    """The group of each tile, and how many tiles the groups before it have, above 32 bits."""
    (axis,) = axes_of(to.shape)
    array = tirx.address_of(tirx.BufferLoad(ends, [i32(0)]))
    given = (i32(each) if isinstance(each, int) else each for each in numbers)
    value = device.device("int64", "group.of.tile", array, *given, axis.var)
    loop = element_wise(to.name, [axis], to, [axis.var], value)
    assert isinstance(loop, For)
    assert isinstance(loop.body, SBlockRealize)
    return Nest((loop,), loop.body, loop)


def _of_buffers(nest: Nest, instead: dict[Buffer, Buffer]) -> Nest:
    """The nest with other buffers in place of some."""
    block = renamed_block(nest, nest.name, instead)
    realize = SBlockRealize(list(nest.realize.iter_values), True, block)
    return Nest(nest.loops, realize, again(nest.loops, realize))


def _core(found: GroupedProduct, extents: tuple[Extent, int, int, int]) -> PrimFunc:
    """The product itself, [tile, row, column]."""
    s, m, n, k = extents
    a_type, b_type, sums = found.types
    a = te.placeholder((s, m, k), name="A", dtype=a_type)
    b = te.placeholder((s, n, k), name="B", dtype=b_type)
    r = te.reduce_axis((0, k), name="k")

    def element(s: Expr, i: Expr, j: Expr) -> Expr:
        return te.sum(a[s, i, r].astype(sums) * b[s, j, r].astype(sums), axis=[r])

    return te.create_prim_func([a, b, te.compute((s, m, n), element, name=found.nest.name)])


def _rows_of_a(found: GroupedProduct, to: Buffer, tables: Tables, name: str) -> Stmt:
    """A block that takes the rows of each tile from where they lie."""
    i, _, k = (axis.var for axis in found.axes)
    axes = list(axes_of(to.shape))
    tile, row, depth = places = [axis.var for axis in axes]
    first, last = (tirx.BufferLoad(table, [tile]) for table in (tables.first, tables.last))
    element: Expr = substitute(found.elements[0], {i: tirx.max(first, 0) + row, k: depth})
    element = inside(element, [(depth, to.shape[2], found.extents[2])])
    zero = tirx.const(0, str(element.ty.dtype))
    return element_wise(
        name, axes, to, places, tirx.if_then_else(first + row < last, element, zero)
    )


def _rows_of_b(found: GroupedProduct, to: Buffer, tables: Tables, name: str) -> Stmt:
    """A block that takes the matrix of each tile's group from where it lies."""
    _, j, k = (axis.var for axis in found.axes)
    axes = list(axes_of(to.shape))
    tile, column, depth = places = [axis.var for axis in axes]
    own = tirx.max(tirx.BufferLoad(tables.group, [tile]), 0)  # what is counted passes do not know
    load = found.elements[1]
    moved = [substitute(index, {j: column, k: depth}) for index in load.indices[1:]]
    element = tirx.BufferLoad(load.source, [own, *moved])
    bounds = [(column, to.shape[1], found.extents[1]), (depth, to.shape[2], found.extents[2])]
    return element_wise(name, axes, to, places, inside(element, bounds))


def rows_stored(
    found: Groups, result: Buffer, tables: Tables, name: str, shape: tuple[Extent, int, int],
    order: Order | None = None,
) -> Stmt:  # fmt: skip
    """A block that stores the rows of each tile that there are, as what follows computes them.

    The `order` says where in the result a column is, if not at its own place.
    """
    given = list(axes_of(shape))
    own = [IterVar(a.dom, tirx.Var(f"v_{a.var.name}", "int32"), IterVar.DataPar) for a in given]
    tile, row, column = (axis.var for axis in own)
    place = tirx.BufferLoad(tables.first, [tile]) + row
    sums = tirx.BufferLoad(result, [tile, row, column if order is None else order(column)])
    before = found.nest.store.buffer
    if found.after is None:
        store = BufferStore(before, sums, [place, column])
    else:
        own_group = tirx.max(tirx.BufferLoad(tables.group, [tile]), 0)
        known = {before: sums, found.table.store.buffer: own_group}
        store = found.after.at(place, column, known)
    body = IfThenElse(place < tirx.BufferLoad(tables.last, [tile]), store, None)
    accessed = {buffer: buffer for buffer in (store.buffer, *buffers([body]))}
    reads, writes = get_sblock_access_region(SBlock(own, [], [], name, body), accessed)[:2]
    loops = [axis.var for axis in given]
    realize = SBlockRealize(loops, True, SBlock(own, reads, writes, name, body))
    return looped(loops, given, realize)


def in_tiles(
    found: Groups, instead: Sequence[Stmt], allocated: Sequence[Buffer], tables: Tables
) -> PrimFunc:
    """The function with these statements in place of the product, and without what they replace.

    They read the tables.
    """
    after = () if found.after is None else found.after.blocks
    gone = [found.table, *after]
    new: list[Stmt] = []
    for statement in statements(found.function):
        if statement.same_as(found.nest.statement):
            new += instead
        elif not any(statement.same_as(nest.statement) for nest in gone):
            new.append(statement)
    assert isinstance(found.function.body, s_tir.SBlockRealize)
    root = found.function.body.block
    unused = [nest.store.buffer for nest in (*gone, *([found.nest] if after else []))]
    kept = [b for b in root.alloc_buffers if not any(map(b.same_as, unused))]
    own = [*allocated, tables.place, tables.group, tables.first, tables.last]
    return with_root(
        found.function, with_parts(root, body=in_sequence(new), allocated=[*kept, *own])
    )
