"""Tile operations: which is which, and copies and casts by the threads themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from b200.buffers import SHARED, Elements, Region
from b200.expressions import Expressions
from b200.machine import Run, Step, Warp
from b200.memory import (
    check_bounds,
    elements,
    enter_read,
    enter_write,
    located,
)
from b200.mma import gemm
from b200.place import Place, Statement
from b200.registers import read_block, write_block
from b200.report import NotUnderstood
from b200.tensor_memory import load
from b200.tma import DISPATCH, transfer

Values = np.ndarray[Any, np.dtype[np.generic]]


def asynchronous_copy(node: Any, expressions: Expressions, at: Statement) -> Step:
    """`copy_async`: by TMA, or out of tensor memory."""
    if node.dispatch == DISPATCH:
        return transfer(node, expressions, at)
    target, source = (expressions.region(part, at) for part in node.args)
    scopes = target.buffer.scope, source.buffer.scope
    if (
        scopes == ("local", "tmem")
        and node.scope.name == "warpgroup"
        and node.dispatch is None
        and not len(node.config)
    ):
        return load(target, source, at)
    raise NotUnderstood(f"the copy {at}")


def copy(node: Any, expressions: Expressions, at: Statement) -> Step:
    """`copy` by threads, each its own part, or by a CTA together.

    Raises:
        NotUnderstood: other threads, types, shapes or options.
    """
    target, source = (expressions.region(part, at) for part in node.args)
    if node.dispatch is not None or len(node.config) or target.buffer.dtype != source.buffer.dtype:
        raise NotUnderstood(f"the copy {at}")
    return moved(target, source, node.scope.name, at)


def cast(node: Any, expressions: Expressions, at: Statement) -> Step:
    """`cast` of registers, rounded to nearest even as NumPy does."""
    target, source = (expressions.region(part, at) for part in node.args[:2])
    scopes = {target.buffer.scope, source.buffer.scope}
    types = source.buffer.dtype, target.buffer.dtype
    if scopes != {"local"} or types != ("float32", "float16") or len(node.args) != 2:
        raise NotUnderstood(f"the cast {at}")
    return moved(target, source, node.scope.name, at)


def moved(target: Region, source: Region, scope: str, at: Statement) -> Step:
    """Elements of one part go to another one of the same shape."""
    memories = {target.buffer.scope, source.buffer.scope} - {"local"}
    if target.squeezed != source.squeezed or not memories <= SHARED | {"global"}:
        raise NotUnderstood(f"the copy {at}")
    if scope == "thread":
        share: Callable[[Warp, Region, Place], Elements] = own_part
    elif scope == "cta" and "local" not in {target.buffer.scope, source.buffer.scope}:
        share = part_of_cta
    else:
        raise NotUnderstood(f"the copy by a {scope}: {at}")

    def run(warp: Warp) -> Run:
        place = warp.place(at)
        event = warp.access(place)
        found = read(warp, source, share(warp, source, place), event, place)
        write(warp, target, share(warp, target, place), found, event, place)
        yield from ()

    return run


def own_part(warp: Warp, region: Region, place: Place) -> Elements:
    """Each active thread's elements: threads x elements."""
    return region.of_lanes(warp, region.buffer.places, place)


def part_of_cta(warp: Warp, region: Region, place: Place) -> Elements:
    """A warp's share of what a CTA copies together: which one that is TIRX leaves open."""
    warp.whole(place, "a copy by the whole CTA")
    places = region.buffer.places[region.box(warp, place)].reshape(-1)
    return np.array_split(places, len(warp.cta.warps))[warp.rank]


def read(warp: Warp, region: Region, index: Elements, event: int, place: Place) -> Values:
    """The elements at these places of a buffer."""
    buffer = region.buffer
    if buffer.scope == "local":
        return read_block(warp, buffer, index, place)
    if buffer.scope == "global":
        return warp.machine.arguments[buffer.key][index]
    cta, offset = located(warp, warp.bases[buffer.key], place)
    places = offset + index * buffer.itemsize
    check_bounds(warp.machine, cta, places, buffer.itemsize, place)
    enter_read(cta, places.reshape(-1), event, warp.order)
    memory, first = elements(cta, buffer.dtype, places)
    return memory[first]


def write(
    warp: Warp, region: Region, index: Elements, values: Values, event: int, place: Place
) -> None:
    """Set the elements at these places of a buffer."""
    buffer = region.buffer
    with np.errstate(over="ignore"):  # what is too large for float16 is infinite there
        values = values.astype(buffer.dtype)
    if buffer.scope == "local":
        write_block(warp, buffer, index, values, place)
    elif buffer.scope == "global":
        warp.machine.arguments[buffer.key][index] = values
    else:
        cta, offset = located(warp, warp.bases[buffer.key], place)
        places = offset + index * buffer.itemsize
        check_bounds(warp.machine, cta, places, buffer.itemsize, place)
        enter_write(cta, places.reshape(-1), event, warp.order)
        memory, first = elements(cta, buffer.dtype, places)
        memory[first] = values


Translate = Callable[[Any, Expressions, Statement], Step]
TILES: dict[str, Translate] = {
    "copy": copy, "copy_async": asynchronous_copy, "cast": cast, "gemm_async": gemm,
}  # fmt: skip
