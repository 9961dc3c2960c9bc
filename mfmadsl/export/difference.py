"""Two layouts of one instruction: equal, equal up to the order of k, or different.

A product does not mind in which order k is summed up: if A and B have theirs in another order, and
both in the same one, the instruction adds the same products. It does mind if scales belong to
groups of k, or if an index counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mfmadsl.argument import check_type
from mfmadsl.error import ArgumentError
from mfmadsl.export.expand import Element, Slot, elements_of, shape_of
from mfmadsl.export.peers import PEERS
from mfmadsl.model import Intrinsic, Layout, architecture

EQUAL = "equal"
REORDERED = "equal up to the order of k"
DIFFERENT = "different"

Order = tuple[tuple[int, ...], ...]
"""For each block, which k of theirs lies where each k of ours does."""


@dataclass(frozen=True)
class OperandDifference:
    """What is said of one operand.

    `element` is the first one, as (block, row, column), that lies elsewhere: at `ours` and at
    `theirs`, each as (lane, number of the element in that lane). `reason` says what else is known.
    """

    operand: str
    verdict: str
    element: Element | None = None
    ours: Slot | None = None
    theirs: Slot | None = None
    reason: str = ""


@dataclass(frozen=True)
class Difference:
    """What is said of an instruction's operands, compared with what `other` says of them."""

    name: str
    other: str
    operands: tuple[OperandDifference, ...]

    @property
    def verdict(self) -> str:
        """The worst of its operands'."""
        verdicts = {operand.verdict for operand in self.operands}
        return next(v for v in (DIFFERENT, REORDERED, EQUAL) if v in verdicts)


def diff_layouts(
    intrinsic: Intrinsic, other: str | Intrinsic, arch: str | None = None
) -> Difference:
    """How the layouts of an instruction differ from another project's, or from another entry's.

    `other` is "triton" (which has to be installed), "iree", "ck", or an intrinsic of the same
    shape; `arch` is the chip that Triton is asked for, else the newest one.

    Raises ExportError where the project says nothing of the instruction; ArgumentError or
    ArgumentTypeError for a project that is not known, and for an intrinsic of another shape.
    """
    check_type("intrinsic", intrinsic, Intrinsic, "an intrinsic, such as find() gives")
    check_type("other", other, (str, Intrinsic), "a project's name or an intrinsic")
    if isinstance(other, Intrinsic):
        return compare_layouts(intrinsic, _layouts(other), other.name)
    if other not in PEERS:
        raise ArgumentError(f"other: layouts are compared with {', '.join(PEERS)}, or an intrinsic")
    peer = PEERS[other]
    layouts = peer.layouts(intrinsic, None if arch is None else architecture(arch).name)
    return compare_layouts(intrinsic, layouts, f"{peer.name}'s {peer.called(intrinsic)}")


def _layouts(intrinsic: Intrinsic) -> dict[str, Layout]:
    return {operand.name: operand.layout for operand in intrinsic.operands.values()}


def compare_layouts(intrinsic: Intrinsic, theirs: Mapping[str, Layout], other: str) -> Difference:
    """The verdict on each operand that both have.

    Raises ArgumentError if there is none, or if theirs are of other extents.
    """
    ours = {name: layout for name, layout in _layouts(intrinsic).items() if name in theirs}
    if not ours:
        raise ArgumentError(f"{other} says nothing of {', '.join(_layouts(intrinsic))}")
    for name, layout in ours.items():
        if shape_of(layout) != shape_of(theirs[name]):
            here, there = (" x ".join(map(str, shape_of(x))) for x in (layout, theirs[name]))
            raise ArgumentError(
                f"`{name}` of {intrinsic.name} has {here} elements (blocks, rows, columns), "
                f"and that of {other} {there}"
            )
    order = _common_order(intrinsic, ours, theirs)
    return Difference(
        intrinsic.name,
        other,
        tuple(_compared(name, layout, theirs[name], order) for name, layout in ours.items()),
    )


def _compared(
    name: str, ours: Layout, theirs: Layout, order: Order | str | None
) -> OperandDifference:
    """`order` is that of k in A and B; or why there is none; or None if there is nothing to say."""
    if ours == theirs:
        return OperandDifference(name, EQUAL)
    places = elements_of(shape_of(ours))
    element = next((e for e in places if _slot(ours, e) != _slot(theirs, e)), (0, 0, 0))
    where = element, _slot(ours, element), _slot(theirs, element)
    if name not in ("a", "b") or order is None:
        return OperandDifference(name, DIFFERENT, *where)
    if isinstance(order, str):
        return OperandDifference(name, DIFFERENT, *where, reason=order)
    k, there = next((k, there) for k, there in _pairs(order) if k != there)
    reason = f"where k = {k} lies here, k = {there} lies there, of A and of B alike"
    return OperandDifference(name, REORDERED, *where, reason=reason)


def _common_order(
    intrinsic: Intrinsic, ours: Mapping[str, Layout], theirs: Mapping[str, Layout]
) -> Order | str | None:
    """The order in which both A and B of theirs have k, if it is one that changes no product.

    Else why it is none; None if k has no part in what A or B differs in.
    """
    if "a" not in ours or "b" not in ours:
        return None
    a = _order(ours["a"], theirs["a"], along_rows=False)
    b = _order(ours["b"], theirs["b"], along_rows=True)
    if a is None or b is None:
        return None
    if intrinsic.sparse:
        return "k is in another order, and the index of a sparse A counts the places along k"
    if a != b:
        return "k is in another order, and not in the same one of A and of B"
    for scale in intrinsic.scales:
        groups = scale.layout.columns if scale.name == "scale_a" else scale.layout.rows
        group = intrinsic.k // groups
        for k, there in _pairs(a):
            if k // group != there // group:
                return (
                    f"k is in another order, and each scale belongs to a group of {group} k: "
                    f"where k = {k} lies here, k = {there} of another group lies there"
                )
    return a


def _pairs(order: Order) -> Iterator[tuple[int, int]]:
    """(k of ours, k of theirs that lies there), block by block."""
    return (pair for block in order for pair in enumerate(block))


def _order(ours: Layout, theirs: Layout, along_rows: bool) -> Order | None:
    """Which k of theirs lies where each k of ours does, in each block: the same in all rows of A,
    or in all columns of B; None if it is not the same, or if more than k moves."""
    if (ours.lanes, ours.elements_per_lane) != (theirs.lanes, theirs.elements_per_lane):
        return None
    others, depth = (ours.columns, ours.rows) if along_rows else (ours.rows, ours.columns)
    found = []
    for block in range(ours.blocks):
        orders = set()
        for x in range(others):
            order = []
            for k in range(depth):
                slot = ours.slot(*((k, x) if along_rows else (x, k)), block)
                there, row, column = theirs.element(*slot)
                if (there, column if along_rows else row) != (block, x):
                    return None
                order.append(row if along_rows else column)
            orders.add(tuple(order))
        if len(orders) > 1:
            return None
        found.append(orders.pop())
    return tuple(found)


def _slot(layout: Layout, element: Element) -> Slot:
    block, row, column = element
    return layout.slot(row, column, block)
