"""A product of scaled blocks in whole tiles: sums of groups, and scales as lanes hold them."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te, tirx
from tvm.s_tir import SBlockRealize
from tvm.tirx import Buffer, Expr, PrimFunc, Stmt

from mfmadsl.schedule.product.added_nest import element_wise, replaced, unique
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct
from mfmadsl.schedule.product.described import axes_of
from mfmadsl.schedule.product.nest import block_names, nests
from mfmadsl.schedule.product.unread import without_unread
from mfmadsl.schedule.product.whole_tiles import Order, inside, whole_extents

SUM = "float32"


@dataclass(frozen=True)
class GroupedSum:
    """A function with a product in whole tiles, and what its blocks are called."""

    function: PrimFunc
    names: GroupedNames


@dataclass(frozen=True)
class GroupedNames:
    """The block that sums the products of each group, that which scales and adds them, and those
    that have the scales of rows and of columns in each lane."""

    sums: str
    total: str
    scales: tuple[str, str]


def grouped_sum(
    found: BlockScaledProduct, tiles: tuple[int, int, int], lanes: tuple[int, int],
    column: Order, place: Order,
) -> GroupedSum:  # fmt: skip
    """The function with whole tiles of M, N and K, the last of which are whole groups; a tile of
    the instruction has so many rows and columns.

    It goes through the columns of C in another order: `column` gives that at a place in the order,
    and `place` where a column is.

    Blocks before it take elements and scales to where the product has them, which is zero beyond
    the matrices, and one behind it the result: they can be inlined, and are no copies in memory.

    Raises ScheduleError where whole tiles are more than a loop counts.
    """
    taken = block_names(found.function)
    inner = sum_in_tiles(found, tiles, lanes, column, taken)
    axes = list(axes_of(found.nest.store.buffer.shape))
    places = [axis.var for axis in axes]
    *batch, i, j = places
    first: list[Expr] = [*batch] if batch else [tirx.IntImm("int32", 0)]
    here = [*first, i, place(j)]
    name = unique(f"{found.nest.name}_result", taken)
    value = tirx.BufferLoad(inner.result, here)
    after = element_wise(name, axes, found.nest.store.buffer, places, value)
    function = replaced(found.function, found.nest, [*inner.statements, after], inner.allocated)
    return GroupedSum(without_unread(function, found.inside), inner.names)


@dataclass(frozen=True)
class SumInTiles:
    """The statements of a product in whole tiles, the buffers that it takes, and of these the one
    of its result."""

    statements: list[Stmt]
    allocated: list[Buffer]
    result: Buffer
    names: GroupedNames


def sum_in_tiles(
    found: BlockScaledProduct, tiles: tuple[int, int, int], lanes: tuple[int, int],
    column: Order, taken: set[str],
) -> SumInTiles:  # fmt: skip
    """The product itself, in blocks of names that are not taken, as `grouped_sum` has it."""
    s, *sides = found.extents
    rows, columns, k = whole_extents(sides, tiles)
    groups = k // found.group
    names = GroupedNames(
        unique(f"{found.nest.name}_groups", taken), found.nest.name,
        (unique("A_scales_in_lanes", taken), unique("B_scales_in_lanes", taken)),
    )  # fmt: skip
    core = _core(found, (s, rows, columns, groups), lanes, names)
    *given, result = core.params
    before: list[Stmt] = []
    operands = {str(each.name): each for each in given}
    for side, (name, order) in enumerate((("A", _as_it_is), ("B", column))):
        before.append(_elements(found, side, operands[name], taken, order))
        if (scale := found.scales[side]) is not None:
            to = operands[f"SCALE_{name}"]
            before.append(_scales(found, side, scale, to, taken, order))
    assert isinstance(core.body, SBlockRealize)
    own = [*given, result, *core.body.block.alloc_buffers]
    return SumInTiles([*before, *(each.statement for each in nests(core))], own, result, names)


def _scaled_sides(found: BlockScaledProduct) -> list[int]:
    return [side for side, scale in enumerate(found.scales) if scale is not None]


def _core(
    found: BlockScaledProduct, extents: tuple[int, int, int, int], lanes: tuple[int, int],
    names: GroupedNames,
) -> PrimFunc:  # fmt: skip
    """The product itself: of A, B and the scales of each row or column, [s, groups, ...]."""
    s, m, n, groups = extents
    height, width = lanes
    a_type, b_type = found.types
    a = te.placeholder((s, m, groups * found.group), name="A", dtype=a_type)
    b = te.placeholder((s, n, groups * found.group), name="B", dtype=b_type)
    g = te.reduce_axis((0, groups), name="g")
    kk = te.reduce_axis((0, found.group), name="kk")
    scaled = _scaled_sides(found)
    scales = {
        side: te.placeholder((s, groups, (m, n)[side]), name=f"SCALE_{'AB'[side]}", dtype=SUM)
        for side in scaled
    }

    # A lane has the scales of the places of a tile that it has sums of.
    shapes = (groups, s, m, width), (groups, s, height, n)

    def in_lanes(side: int) -> te.Tensor:
        given = scales[side]
        return te.compute(
            shapes[side], lambda g, s, i, j: given[s, g, (i, j)[side]],
            name=names.scales[side],
        )  # fmt: skip

    of_lanes = {side: in_lanes(side) for side in scaled}

    def product(g: Expr, s: Expr, i: Expr, j: Expr) -> Expr:
        x, y = a[s, i, g * found.group + kk], b[s, j, g * found.group + kk]
        return te.sum(x.astype(SUM) * y.astype(SUM), axis=[kk])

    p = te.compute((groups, s, m, n), product, name=names.sums)

    def total(s: Expr, i: Expr, j: Expr) -> Expr:
        places = (i, j % width), (i % height, j)
        value: Expr = p[g, s, i, j]
        for side in scaled:  # one by one: the product of two scales may be no number
            value = value * of_lanes[side][(g, s, *places[side])]
        return te.sum(value, axis=[g])

    c = te.compute((s, m, n), total, name=names.total)
    return te.create_prim_func([a, b, *scales.values(), c])


def _as_it_is(row: Expr) -> Expr:
    return row


def _elements(
    found: BlockScaledProduct, side: int, to: Buffer, taken: set[str], order: Order
) -> Stmt:
    """A block that takes A or B from where it lies."""
    axes = list(axes_of(to.shape))
    s, at, k = (axis.var for axis in axes)
    row = order(at)
    value = found.at(found.elements[side], side, s, row, k)
    return element_wise(
        unique(f"{'AB'[side]}_whole", taken), axes, to, [s, at, k],
        inside(value, [(row, to.shape[1], found.extents[1 + side]),
                        (k, to.shape[2], found.extents[3])]),
    )  # fmt: skip


def _scales(
    found: BlockScaledProduct, side: int, scale: Expr, to: Buffer, taken: set[str], order: Order
) -> Stmt:
    """A block that takes the scales of rows or columns from where they lie."""
    axes = list(axes_of(to.shape))
    s, group, at = (axis.var for axis in axes)
    row = order(at)
    value = found.at(scale, side, s, row, group)
    return element_wise(
        unique(f"{'AB'[side]}_scales", taken), axes, to, [s, group, at],
        inside(value, [(row, to.shape[2], found.extents[1 + side]),
                        (group, to.shape[1], -(-found.extents[3] // found.group))]),
    )  # fmt: skip
