"""Layouts that are no instruction's: any linear map of bits, and any order of bits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import strategies as st

from mfmadsl.language import find
from mfmadsl.model import BitMatrix, Intrinsic, Layout

BITS = st.integers(1, 3)
HALF = "mfma_f32_16x16x16_f16"


@st.composite
def linear_layouts(draw: st.DrawFn, shuffled_only: bool = False) -> Layout:
    """One block of up to 8 x 8 elements, in a bit-linear and one-to-one map.

    If `shuffled_only`, each bit of a place is one bit of the element's row or column.
    """
    rows, columns = draw(BITS), draw(BITS)
    height = rows + columns
    lanes = draw(st.integers(0, height))
    order = draw(st.permutations(range(height)))
    images = [1 << bit for bit in order]
    if not shuffled_only:  # adding one image to another keeps the map one-to-one
        for _ in range(draw(st.integers(0, 8))):
            first, second = draw(st.permutations(range(height)))[:2]
            images[first] ^= images[second]
    matrix = BitMatrix(tuple(images), height)
    slots = tuple(divmod(matrix.apply(x), 1 << height - lanes) for x in range(1 << height))
    return Layout(1 << rows, 1 << columns, 1 << lanes, 1 << height - lanes, slots)


def entry(layout: Layout) -> Intrinsic:
    """An instruction of which A and C lie so; all else of it is another's."""
    intrinsic = find(HALF)
    a, c = (replace(operand, layout=layout) for operand in (intrinsic.a, intrinsic.c))
    return replace(intrinsic, a=a, c=c)


def reordered(intrinsic: Intrinsic, order: tuple[int, ...], operands: str) -> dict[str, Layout]:
    """The layouts of an instruction with k of some operands in another order.

    Element k of theirs lies where element order[k] does here.
    """
    found = {name: operand.layout for name, operand in intrinsic.operands.items()}
    for name in operands:
        layout = found[name]
        everywhere = product(range(layout.blocks), range(layout.rows), range(layout.columns))
        slots = tuple(
            layout.slot(row, order[column], block)
            if name == "a"
            else layout.slot(order[row], column, block)
            for block, row, column in everywhere
        )
        found[name] = replace(layout, slots=slots)
    return found
