"""A product that a module describes, made one of whole tiles: no primitive of TVM pads its sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from tvm import tirx
from tvm.tirx import Expr, PrimFunc, Stmt

from mfmadsl.argument import LARGEST_EXTENT
from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.added_nest import element_wise, renamed, replaced, unique
from mfmadsl.schedule.product.described import DescribedProduct, axes_of, in_batches
from mfmadsl.schedule.product.nest import block_names, nests

Order: TypeAlias = Callable[[Expr], Expr]
"""Where a column stands among those of a product, or which one stands there."""


def in_whole_tiles(found: DescribedProduct, tiles: tuple[int, int, int]) -> PrimFunc:
    """The function with the product in whole tiles of M, N and K, in batches of one at least.

    B lies as N x K in it. What is missing is zero. Blocks before it take the operands, and one
    behind it the result, to where the product has them: they can be inlined, and are no copies in
    memory.

    Raises ScheduleError where whole tiles are more than a loop counts.
    """
    s, *sides = found.extents
    m, n, k = whole_extents(sides, tiles)
    taken = block_names(found.function)
    whole = in_batches(replace(found.form, b_transposed=True).workload((m, n, k)), s)
    operands = {str(buffer.name): buffer for buffer in whole.params[:-1]}
    result = whole.params[-1]
    before: list[Stmt] = []
    for name, buffer in found.reads.items():
        to = operands[name]
        axes = list(axes_of(to.shape))
        places = [axis.var for axis in axes]
        which, row, column = zip(places, to.shape, strict=True)
        if name == "B" and not found.form.b_transposed:
            row, column = column, row
        at = [*([which] if found.in_batches else []), row, column]
        element = tirx.BufferLoad(buffer, [place for place, _ in at])
        value = inside(
            element, [(*pair, there) for pair, there in zip(at, buffer.shape, strict=True)]
        )
        before.append(element_wise(unique(f"{name}_whole", taken), axes, to, places, value))
    (nest,) = nests(whole)
    name = unique(f"{found.nest.name}_result", taken)
    axes = list(axes_of(found.result.shape))
    places = [axis.var for axis in axes]
    here = places if found.in_batches else [tirx.IntImm("int32", 0), *places]
    after = element_wise(name, axes, found.result, places, tirx.BufferLoad(result, here))
    middle = renamed(nest, found.nest.name, {})
    return replaced(
        found.function, found.nest, [*before, middle, after], [*operands.values(), result]
    )


def whole_extents(extents: Sequence[int], tiles: Sequence[int]) -> tuple[int, int, int]:
    """M, N and K rounded up to whole tiles. Raises ScheduleError for more than a loop counts."""
    m, n, k = (-(-extent // tile) * tile for extent, tile in zip(extents, tiles, strict=True))
    if max(m, n, k) > LARGEST_EXTENT:
        raise ScheduleError(
            f"workload: whole tiles make {m} x {n} x {k} of it, and loops count up to"
            f" {LARGEST_EXTENT}: make it smaller, or give smaller tiles"
        )
    return m, n, k


def inside(value: Expr, places: Sequence[tuple[Expr, Expr, Expr | int]]) -> Expr:
    """The value, or zero beyond what there is: places with the extents of their axes, and of what
    there is."""
    bounds = [p < there for p, extent, there in places if constant(extent) != constant(there)]
    if not bounds:
        return value
    return tirx.if_then_else(tirx.all(*bounds), value, tirx.const(0, str(value.ty.dtype)))
