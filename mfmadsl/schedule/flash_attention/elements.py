"""Elements of the arguments at places of a kernel, and zeros beyond their edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import constant, depends
from mfmadsl.schedule.flash_attention.described import Axis, at_places
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace
from mfmadsl.schedule.product.nest import is_number


@dataclass(frozen=True)
class Bound:
    """A place along an axis of which a tile has so many; there are elements before `end`."""

    place: Expr
    axis: Axis
    tile: int
    end: Expr

    @property
    def inside(self) -> list[Expr]:
        """The condition that it is no place beyond the end, if it may be one."""
        return [] if divides(self.tile, self.end) else [self.place < self.end]

    @property
    def nearest(self) -> Expr:
        """The place, or the last one for a place beyond the end."""
        return tirx.min(self.place, self.end - 1) if self.inside else self.place


@dataclass(frozen=True)
class BoundedElement:
    """An element of an argument, at places that are bounded and at others."""

    element: Expr
    bounds: tuple[Bound, ...]
    batch: Mapping[Var, Expr]

    def copied(self, is_there: Expr | None = None) -> Expr:
        """The element, or zero beyond an edge or where it is not there: nothing is read then.

        Whether its row is there is asked outside of all else: passes are told of such edges.
        """
        places = {bound.axis.var: bound.place for bound in self.bounds}
        element = at_places(self.element, {**places, **self.batch})
        row, *others = self.bounds
        edges = row.inside
        if is_there is not None and not is_number(is_there, 1):
            edges.append(is_there)
        zero = tirx.const(0, str(element.ty.dtype))
        for conditions in ([each for bound in others for each in bound.inside], edges):
            if conditions:
                element = tirx.if_then_else(tirx.all(*conditions), element, zero)
        return element

    def nearest(self) -> Expr:
        """The element, or beyond an edge the nearest one, for what does not depend on it: without a
        branch, so that all loads of a lane are under way together."""
        places = {bound.axis.var: bound.nearest for bound in self.bounds}
        return at_places(self.element, {**places, **self.batch})


def query(cut: Cut, place: WavePlace, row: Expr, depth: Expr) -> BoundedElement:
    """An element of Q."""
    bounds = _row(cut, place, row), _along(cut.found.axes.depth, depth, cut.chain.first.k)
    return BoundedElement(cut.found.q, bounds, place.batch)


def key(cut: Cut, place: WavePlace, number: Expr, depth: Expr) -> BoundedElement:
    """An element of K."""
    bounds = _key(cut, place, number), _along(cut.found.axes.depth, depth, cut.chain.first.k)
    return BoundedElement(cut.found.k, bounds, place.batch)


def value(cut: Cut, place: WavePlace, number: Expr, column: Expr) -> BoundedElement:
    """An element of V."""
    bounds = _key(cut, place, number), _along(cut.found.axes.column, column, cut.chain.intrinsic.m)
    return BoundedElement(cut.found.v, bounds, place.batch)


def read(
    cut: Cut, place: WavePlace, load: TensorLoad, row: Expr, number: Expr | None
) -> BoundedElement:
    """An element that a score reads, for a query and, unless it is the same for all, a key."""
    bounds = [_row(cut, place, row)] if depends(load, cut.found.axes.row.var) else []
    if number is not None:
        bounds.append(_key(cut, place, number))
    return BoundedElement(load, tuple(bounds), place.batch)


def _along(axis: Axis, place: Expr, tile: int) -> Bound:
    return Bound(place, axis, tile, axis.extent)


def _row(cut: Cut, place: WavePlace, row: Expr) -> Bound:
    return Bound(row, cut.found.axes.row, cut.tiling.block, place.rows)


def _key(cut: Cut, place: WavePlace, number: Expr) -> Bound:
    return Bound(number, cut.found.axes.key, cut.tiling.keys, place.keys)


def divides(tile: int, extent: Expr) -> bool:
    """Whether an extent is surely a number of whole tiles."""
    number = constant(extent)
    return number is not None and number % tile == 0
