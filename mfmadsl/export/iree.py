"""IREE's MMASingleSubgroupLayout: what of each dimension is registers, and what is lanes.

Of each dimension `outer` pieces follow each other in registers, each of `thread` pieces in lanes
that are `tstrides` apart, each of `element` consecutive elements. A lane's registers count
dimension by dimension, outer before element: so do the slices that IREE takes
(`populateCanonicalOffsetsSizesAndStrides` in IREEGPUAttrs.cpp). Scaled operands have k as two
dimensions, groups of 32 and what is in one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mfmadsl.export.error import ExportError
from mfmadsl.export.expand import Element, Slot, layout_of_slots, shape_of
from mfmadsl.model import Intrinsic, Layout, Operand

GROUP = 32
"""Elements along k that IREE's scaled instructions give one scale."""

_AXES = {
    "a": {"block": 0, "M": 1, "K": 2, "K / 32": 2, "32": 2},
    "b": {"block": 0, "K": 1, "K / 32": 1, "32": 1, "N": 2},
    "c": {"block": 0, "M": 1, "N": 2},
    "scale_a": {"block": 0, "M": 1, "K / 32": 2},
    "scale_b": {"block": 0, "K / 32": 1, "N": 2},
}
"""Which of block, row and column each dimension is a part of."""


@dataclass(frozen=True)
class SubgroupLayout:
    """A MMASingleSubgroupLayout: four numbers for each dimension."""

    outer: tuple[int, ...]
    thread: tuple[int, ...]
    tstrides: tuple[int, ...]
    element: tuple[int, ...]

    def __str__(self) -> str:
        fields = (f"/*{name}=*/{_braces(value)}" for name, value in vars(self).items())
        return f"{{{', '.join(fields)}}}"


def write(intrinsic: Intrinsic, operands: Sequence[Operand], arch: str | None) -> str:
    """C++ initialisers, with the dimensions that they speak of."""
    if intrinsic.sparse:
        raise ExportError(
            f"{intrinsic.name} is sparse, and IREE has no layout of a sparse matrix instruction"
        )
    parts = [f"// {intrinsic.name}: MMASingleSubgroupLayout of each operand."]
    for operand in operands:
        names = dimensions(intrinsic, operand.name)
        found = _subgroup_layout(operand, names)
        if found is None:
            raise ExportError(
                f"{intrinsic.name}: `{operand.name}` does not lie in one run of registers, one of "
                "lanes and one of registers along each of its dimensions, as IREE has it"
            )
        parts.append(f"// {operand.name} ({', '.join(names)})\n{found}")
    return "\n\n".join(parts)


def read(text: str) -> dict[str, Layout]:
    """The layouts of what `write` makes."""
    found = {}
    for name, names, fields in re.findall(r"^// (\w+) \((.*)\)\n\{(.*)\}$", text, re.MULTILINE):
        numbers = re.findall(r"\*/\{(.*?)\}", fields)
        layout = SubgroupLayout(*(tuple(map(int, each.split(", "))) for each in numbers))
        found[name] = expanded(layout, name, names.split(", "))
    return found


def dimensions(intrinsic: Intrinsic, operand: str) -> tuple[str, ...]:
    """What IREE's dimensions of an operand are, in order."""
    k: tuple[str, ...] = ("K",)
    if intrinsic.scales:
        k = ("K / 32",) if operand.startswith("scale") else ("K / 32", "32")
        groups = {
            s.layout.columns if s.name == "scale_a" else s.layout.rows for s in intrinsic.scales
        }
        if groups != {intrinsic.k // GROUP}:
            raise ExportError(f"{intrinsic.name}: IREE's scales are of groups of {GROUP} along k")
    found = {"a": ("M", *k), "b": (*k, "N"), "c": ("M", "N"), "scale_a": ("M", *k)}.get(
        operand, (*k, "N")
    )
    return ("block", *found) if intrinsic.blocks > 1 else found


def expanded(layout: SubgroupLayout, operand: str, names: Sequence[str]) -> Layout:
    """The layout of such numbers, of the dimensions that are called so.

    Raises ExportError if they put two elements in one place, or leave a place empty.
    """
    axes = [_AXES[operand][name] for name in names]
    extents = [
        o * t * e for o, t, e in zip(layout.outer, layout.thread, layout.element, strict=True)
    ]
    shape = (_extent(extents, axes, 0), _extent(extents, axes, 1), _extent(extents, axes, 2))

    numbers = zip(layout.outer, layout.thread, layout.tstrides, layout.element, strict=True)
    dimensions = list(zip(axes, _strides(extents, axes), extents, numbers, strict=True))

    def slot(element: Element) -> Slot:
        lane = register = 0
        for axis, stride, extent, (outer, thread, tstride, inner) in dimensions:
            place = element[axis] // stride % extent
            lane += place // inner % thread * tstride
            register = (register * outer + place // (inner * thread)) * inner + place % inner
        return lane, register

    per_lane = prod(layout.outer) * prod(layout.element)
    return layout_of_slots(shape, prod(layout.thread), per_lane, slot)


def _subgroup_layout(operand: Operand, names: Sequence[str]) -> SubgroupLayout | None:
    """The numbers with which the operand lies as it does; None if there are none.

    They are those that each dimension has by itself.
    """
    axes = [_AXES[operand.name][name] for name in names]
    shape = shape_of(operand.layout)
    extents = [
        GROUP if name == "32" else shape[axis] // (GROUP if _grouped(name, names) else 1)
        for name, axis in zip(names, axes, strict=True)
    ]
    found = []
    for d, extent in enumerate(extents):
        lanes = [
            operand.layout.slot(row, column, block)[0]
            for block, row, column in (_joined(d, x, extents, axes) for x in range(extent))
        ]
        element = next((x for x in range(extent) if lanes[x] != lanes[0]), extent)
        starts = lanes[::element]
        thread = next((x for x in range(1, len(starts)) if starts[x] == starts[0]), len(starts))
        if extent % (element * thread):
            return None
        stride = starts[1] - starts[0] if thread > 1 else 0
        found.append((extent // (element * thread), thread, stride, element))
    layout = SubgroupLayout(*zip(*found, strict=True))
    try:
        return layout if expanded(layout, operand.name, names) == operand.layout else None
    except ExportError:  # the dimensions do not go together
        return None


def _grouped(name: str, names: Sequence[str]) -> bool:
    """Whether a dimension is the groups of one that goes on in the next."""
    return name == "K / 32" and "32" in names


def _extent(extents: Sequence[int], axes: Sequence[int], axis: int) -> int:
    return prod(e for e, a in zip(extents, axes, strict=True) if a == axis)


def _strides(extents: Sequence[int], axes: Sequence[int]) -> list[int]:
    """How far one step of each dimension is along its axis."""
    return [
        prod(e for e, a in zip(extents[d + 1 :], axes[d + 1 :], strict=True) if a == axes[d])
        for d in range(len(axes))
    ]


def _joined(d: int, x: int, extents: Sequence[int], axes: Sequence[int]) -> Element:
    """The element at `x` of one dimension, and at the beginning of all others."""
    place = [0, 0, 0]
    place[axes[d]] = x * _strides(extents, axes)[d]
    block, row, column = place
    return block, row, column


def _braces(numbers: Sequence[int]) -> str:
    return f"{{{', '.join(map(str, numbers))}}}"
