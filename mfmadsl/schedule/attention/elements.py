"""Elements of the arguments at places of a kernel, and zeros beyond their edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant, depends
from mfmadsl.schedule.attention.described import Axis, at_places
from mfmadsl.schedule.attention.wave import Cut, Place
from mfmadsl.schedule.product.nest import is_number

Bound: TypeAlias = tuple[Expr, Axis, int]
"""A place, its axis, and how many of it a tile has."""


def query(cut: Cut, place: Place, row: Expr, depth: Expr) -> Expr:
    """An element of Q."""
    axes = cut.found.axes
    places = {axes.row.var: row, axes.depth.var: depth, **place.batch}
    bounds = [(row, axes.row, cut.tiling.block), (depth, axes.depth, cut.chain.first.k)]
    return inside(at_places(cut.found.q, places), bounds)


def key(cut: Cut, place: Place, number: Expr, depth: Expr, is_there: Expr) -> Expr:
    """An element of K, if there is such a step."""
    axes = cut.found.axes
    places = {axes.key.var: number, axes.depth.var: depth, **place.batch}
    bounds = [(number, axes.key, cut.tiling.keys), (depth, axes.depth, cut.chain.first.k)]
    return inside(at_places(cut.found.k, places), bounds, is_there)


def value(cut: Cut, place: Place, number: Expr, column: Expr) -> Expr:
    """An element of V."""
    axes = cut.found.axes
    places = {axes.key.var: number, axes.column.var: column, **place.batch}
    bounds = [(number, axes.key, cut.tiling.keys), (column, axes.column, cut.chain.intrinsic.m)]
    return inside(at_places(cut.found.v, places), bounds)


def read(
    cut: Cut, place: Place, load: TensorLoad, row: Expr, number: Expr | None, is_there: Expr
) -> Expr:
    """An element that a score reads, for a query and, unless it is the same for all, a key."""
    axes = cut.found.axes
    bounds: list[Bound] = []
    places = {axes.row.var: row, **place.batch}
    if depends(load, axes.row.var):
        bounds.append((row, axes.row, cut.tiling.block))
    if number is not None:
        places[axes.key.var] = number
        bounds.append((number, axes.key, cut.tiling.keys))
    return inside(at_places(load, places), bounds, is_there)


def inside(element: Expr, bounds: Sequence[Bound], is_there: Expr | None = None) -> Expr:
    """The element, or zero where a place is beyond the end of its axis, or not there."""
    conditions = [
        place < axis.extent for place, axis, tile in bounds if not divides(tile, axis.extent)
    ]
    if is_there is not None and not is_number(is_there, 1):
        conditions.append(is_there)
    if not conditions:
        return element
    return tirx.if_then_else(tirx.all(*conditions), element, tirx.const(0, str(element.ty.dtype)))


def divides(tile: int, extent: Expr) -> bool:
    """Whether an extent is surely a number of whole tiles."""
    number = constant(extent)
    return number is not None and number % tile == 0
