"""The shape of a launch, and where in it a warp is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from b200.buffers import constant
from b200.machine import LANES, LARGEST_SHARED, WARPS, Value, Warp
from b200.report import NotUnderstood

# Of `ScopeIdDef.scope`, by what it counts in what.
KERNEL_CLUSTER, KERNEL_CTA, CLUSTER_CTA, CTA_WARPGROUP, CTA_WARP, CTA_THREAD = 0, 1, 2, 3, 4, 7
NUMBERS: dict[int, Callable[[Warp], Value]] = {
    KERNEL_CLUSTER: lambda warp: warp.cta.cluster.number,
    KERNEL_CTA: lambda warp: warp.cta.number,
    CLUSTER_CTA: lambda warp: warp.cta.rank,
    CTA_WARPGROUP: lambda warp: warp.rank // WARPS,
    CTA_WARP: lambda warp: warp.rank,
    5: lambda warp: warp.rank % WARPS,  # warps of a warpgroup
    6: lambda warp: np.arange(LANES),  # threads of a warp
    CTA_THREAD: lambda warp: warp.rank * LANES + np.arange(LANES),
    8: lambda warp: warp.rank % WARPS * LANES + np.arange(LANES),  # threads of a warpgroup
}
FIXED = {5: WARPS, 6: LANES, 8: WARPS * LANES}


@dataclass(frozen=True)
class Geometry:
    """How many CTAs are launched, in clusters of how many, with how many warps and bytes."""

    ctas: int
    cluster: int
    warps: int
    shared: int


def extents_of(definition: Any) -> list[int] | None:
    """Of a place in the grid; none if others tell them."""
    if definition.extents is None:
        return None
    return [constant(extent, "an extent of the launch") for extent in definition.extents]


def finder(definition: Any) -> Callable[[Warp], list[Value]]:
    """Where a warp is, by this definition: a number along each of its axes, the first one fastest.

    Raises:
        NotUnderstood: what it counts.
    """
    scope, extents = int(definition.scope), extents_of(definition)
    if scope not in NUMBERS or (scope in FIXED and extents not in (None, [FIXED[scope]])):
        raise NotUnderstood(f"the place in the grid {definition}")
    number = NUMBERS[scope]
    if extents is None or len(extents) == 1:
        return lambda warp: [number(warp)]
    sizes = extents

    def find(warp: Warp) -> list[Value]:
        rest, found = number(warp), []
        for size in sizes:
            found.append(rest % size)
            rest = rest // size
        return found

    return find


def statements(node: Any) -> Iterator[Any]:
    """The statement and all within it."""
    yield node
    for name in ("body", "then_case", "else_case"):
        if getattr(node, name, None) is not None:
            yield from statements(getattr(node, name))
    for part in getattr(node, "seq", ()):
        yield from statements(part)


def geometry_of(body: Any) -> Geometry:
    """What the kernel declares of its launch.

    Raises:
        NotUnderstood: it does not say how many CTAs or warps there are, or asks for too much.
    """
    sizes: dict[int, int] = {}
    shared = 0
    for node in statements(body):
        if type(node).__name__ == "ScopeIdDefStmt":
            extents = extents_of(getattr(node, "def"))
            scope = int(getattr(node, "def").scope)
            if extents is not None and sizes.setdefault(scope, prod(extents)) != prod(extents):
                raise NotUnderstood(f"two sizes of the launch for one scope: {node}")
        if type(node).__name__ == "AttrStmt" and node.attr_key == "tirx.dyn_smem_bytes":
            shared = constant(node.value, "the size of shared memory")
    cluster = sizes.get(CLUSTER_CTA, 1)
    ctas = one_of(sizes, {KERNEL_CTA: 1, KERNEL_CLUSTER: cluster})
    threads = one_of(sizes, {CTA_WARPGROUP: WARPS * LANES, CTA_WARP: LANES, CTA_THREAD: 1})
    if ctas % cluster or threads % LANES:
        raise NotUnderstood(f"{ctas} CTAs of {threads} threads, in clusters of {cluster} CTAs")
    if shared > LARGEST_SHARED:
        raise NotUnderstood(f"{shared} bytes of shared memory: a CTA has {LARGEST_SHARED} at most")
    return Geometry(ctas, cluster, threads // LANES, shared)


def one_of(sizes: dict[int, int], units: dict[int, int]) -> int:
    """The size that all these scopes agree on, of which each has so many in it.

    Raises:
        NotUnderstood: none of them is stated, or they do not agree.
    """
    found = {sizes[scope] * unit for scope, unit in units.items() if scope in sizes}
    if len(found) != 1:
        raise NotUnderstood(f"the launch of {sizes}: it states no one number of CTAs and of warps")
    return found.pop()
