"""CK Tile's constants of an instruction: `amdgcn_mma_base` in core/arch/mma/amdgcn_mma.hpp.

Along k of A and B, and along m of C, the innermost part lies in a lane's vector, the next one in
lanes, and the outermost, of which there are NumAccess, in the vector again. Constants count
elements that are stored or not; the vectors of a sparse A hold half of them. An instruction of
several blocks is one whose N is that of all blocks, and each lane's A is that of one of them
(kARepeat): CK has the same with B repeated, which is not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from mfmadsl.export.error import ExportError
from mfmadsl.export.expand import Element, Slot, layout_of_slots
from mfmadsl.model import SPARSE_GROUP, SPARSE_STORED, Intrinsic, Layout, Operand

Constants = Mapping[str, int]

OPERANDS = ("a", "b", "c")


def write(intrinsic: Intrinsic, operands: Sequence[Operand], arch: str | None) -> str:
    """C++ constants under CK's names, of these operands only."""
    shape = shape_constants(intrinsic)
    found = dict(shape)
    for operand in operands:
        own = _constants(operand, shape, intrinsic)
        if own is None or any(found.get(name, value) != value for name, value in own.items()):
            raise ExportError(
                f"{intrinsic.name}: `{operand.name}` does not lie as CK Tile's constants can say: "
                "in lanes and twice in vectors along k of A and B, alike, and along m of C"
            )
        found |= own
    lines = [f"// {intrinsic.name}: constants of ck_tile::core::arch::mma::amdgcn_mma_base."]
    if intrinsic.blocks > 1:
        lines.append(f"// kN is that of all {intrinsic.blocks} blocks: the repeats of A.")
    left = [name for name in intrinsic.operands if name not in OPERANDS]
    if left:
        lines.append(f"// It has none of {' and '.join(left)}.")
    lines += [f"static constexpr index_t {name} = {value};" for name, value in found.items()]
    return "\n".join(lines)


def read(text: str) -> dict[str, Layout]:
    """The layouts of those of A, B and C whose own constants are there."""
    constants = {name: int(value) for name, value in re.findall(r"index_t (\w+) = (\d+);", text)}
    return {name: expanded(name, constants) for name in OPERANDS if _OWN[name] in constants}


_OWN = {"a": "kAKNumAccess", "b": "kBKNumAccess", "c": "kCMNumAccess"}


def shape_constants(intrinsic: Intrinsic) -> dict[str, int]:
    """The constants that are no operand's own."""
    return {
        "kM": intrinsic.m,
        "kN": intrinsic.n * intrinsic.blocks,
        "kK": intrinsic.k,
        "WaveSize": intrinsic.wave_size,
        "kARepeat": intrinsic.blocks,
        "kBRepeat": 1,
        "kCompressionRatio": SPARSE_GROUP // SPARSE_STORED if intrinsic.sparse else 1,
    }


def expanded(operand: str, constants: Constants) -> Layout:
    """The layout of A (what is stored of it), of B or of C.

    Raises ExportError if the constants do not divide each other, or describe no layout.
    """
    try:
        return _factor(operand, constants) if operand in "ab" else _sum(constants)
    except ZeroDivisionError:
        raise ExportError("constants of CK Tile are positive") from None


def _factor(operand: str, constants: Constants) -> Layout:
    is_a = operand == "a"
    access = constants[_OWN[operand]]
    groups = constants["kK"] // constants["kABKPerLane"]
    per_lane = constants["kABKPerLane"] // (constants["kCompressionRatio"] if is_a else 1)
    inner, depth = per_lane // access, groups * per_lane
    blocks = constants["kARepeat"]
    extent = constants["kM"] if is_a else constants["kN"] // blocks

    def slot(element: Element) -> Slot:
        block, row, column = element
        k, x = (column, row) if is_a else (row, column)
        outer, rest = divmod(k, groups * inner)
        lane = (rest // inner * blocks + block) * extent + x
        return lane, outer * inner + rest % inner

    shape = (blocks, extent, depth) if is_a else (blocks, depth, extent)
    return layout_of_slots(shape, constants["WaveSize"], per_lane, slot)


def _sum(constants: Constants) -> Layout:
    m, blocks, access = constants["kM"], constants["kARepeat"], constants["kCMNumAccess"]
    inner = constants["kCMPerLane"] // access
    groups, n = m // constants["kCMPerLane"], constants["kN"] // blocks
    per_lane = m * n * blocks // constants["WaveSize"]
    in_vector = blocks * constants["kCMPerLane"] == per_lane

    def slot(element: Element) -> Slot:
        block, row, column = element
        outer, rest = divmod(row, groups * inner)
        group, last = divmod(rest, inner)
        if in_vector:
            return group * n + column, (block * access + outer) * inner + last
        return (group * blocks + block) * n + column, outer * inner + last

    return layout_of_slots((blocks, m, n), constants["WaveSize"], per_lane, slot)


def _constants(operand: Operand, shape: Constants, intrinsic: Intrinsic) -> dict[str, int] | None:
    """Those of the operand with which it lies as it does; None if there are none."""
    if operand.name not in OPERANDS:
        raise ExportError(
            f"{intrinsic.name}: CK Tile has constants of A, B and C, and none of `{operand.name}`"
        )
    for own in _offered(operand, shape):
        try:
            if expanded(operand.name, {**shape, **own}) == operand.layout:
                return own
        except ExportError:
            continue
    return None


def _offered(operand: Operand, shape: Constants) -> Iterator[dict[str, int]]:
    """The constants that an operand of this shape may have, those of fewest accesses first."""
    own = _OWN[operand.name]
    if operand.name == "c":
        rows = _divisors(operand.layout.rows)
        for access, per_lane in product(rows, rows):
            if per_lane % access == 0:
                yield {"kCMPerLane": per_lane, own: access}
    else:
        held = operand.layout.elements_per_lane
        total = held * (shape["kCompressionRatio"] if operand.name == "a" else 1)
        yield from ({"kABKPerLane": total, own: access} for access in _divisors(held))


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]
