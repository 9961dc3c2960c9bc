"""Layouts of the library against AMD's calculator, and the laws that every layout keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from mfmadsl.language import library
from mfmadsl.model import Layout, NoClosedFormError

REFERENCE = Path(__file__).parents[1] / "data" / "register_layouts"
LAYOUTS = list(dict.fromkeys(
    operand.layout for intrinsic in library().values() for operand in intrinsic.operands.values()
))  # fmt: skip
EVERY = pytest.mark.parametrize(
    "layout", LAYOUTS, ids=lambda x: f"{x.blocks}x{x.rows}x{x.columns}-{x.elements_per_lane}"
)
CHIP_OF_FAMILY = {"cdna1": "gfx908", "cdna2": "gfx90a", "cdna3": "gfx942"}
FILES = {
    path: intrinsic
    for intrinsic in library().values()
    for mnemonic in intrinsic.mnemonics
    for path in sorted(REFERENCE.glob(f"*.{mnemonic}.json"))
    if CHIP_OF_FAMILY[path.name.partition(".")[0]] in intrinsic.chips
}


def test_every_reference_is_of_an_intrinsic() -> None:
    assert set(FILES) == set(REFERENCE.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_layouts_equal_the_calculators(path: Path) -> None:
    intrinsic, reference = FILES[path], json.loads(path.read_text())
    assert (intrinsic.m, intrinsic.n, intrinsic.k) == tuple(reference[x] for x in "mnk")
    assert dict(intrinsic.cycles)[CHIP_OF_FAMILY[reference["arch"]]] == reference["cycles"]
    assert intrinsic.blocks == reference["blocks"]
    for key in reference["layout"]:
        name = "c" if key == "d" else key
        operand = intrinsic.operand(name)
        rows, columns = operand.shape
        places = [
            operand.location(r, c, block)
            for block in range(intrinsic.blocks)
            for r in range(rows)
            for c in range(columns)
        ]
        ours = [[p.register, p.low, p.high, p.lane] for p in places]
        assert ours == reference["layout"][key], f"operand {name}"


def elements(layout: Layout) -> list[tuple[int, int, int]]:
    """(block, row, column) of each."""
    return list(product(range(layout.blocks), range(layout.rows), range(layout.columns)))


@EVERY
def test_inverse_after_map_is_the_identity(layout: Layout) -> None:
    for block, row, column in elements(layout):
        assert layout.element(*layout.slot(row, column, block)) == (block, row, column)


@EVERY
def test_the_map_is_onto(layout: Layout) -> None:
    slots = set(product(range(layout.lanes), range(layout.elements_per_lane)))
    assert set(layout.slots) == slots
    assert len(layout.slots) == len(slots)


@EVERY
def test_expressions_compute_the_table(layout: Layout) -> None:
    forward, inverse = layout.forward("r", "c", "b"), layout.inverse("x", "e")
    for block, row, column in elements(layout):
        slot = layout.slot(row, column, block)
        assert tuple(form.value(r=row, c=column, b=block) for form in forward) == slot
        found = tuple(form.value(x=slot[0], e=slot[1]) for form in inverse)
        assert found == (block, row, column)


@EVERY
def test_every_layout_of_the_library_is_linear_in_its_bits(layout: Layout) -> None:
    matrix = layout.matrix
    assert matrix is not None
    assert matrix.rank == matrix.width == matrix.height
    for index, (lane, register) in enumerate(layout.slots):
        assert matrix.apply(index) == lane * layout.elements_per_lane + register


@EVERY
def test_moves_between_layouts_bring_each_element_to_its_place(layout: Layout) -> None:
    size = layout.lanes * layout.elements_per_lane
    plain = tuple(divmod(index, layout.elements_per_lane) for index in range(size))
    other = replace(layout, slots=plain)
    moves = layout.compose(other)
    for lane, register in layout.slots:
        block, row, column = layout.element(lane, register)
        to = moves[lane * layout.elements_per_lane + register]
        assert divmod(to, layout.elements_per_lane) == other.slot(row, column, block)
    assert layout.compose(layout) == tuple(range(size))


def test_consecutive_elements_in_one_lane() -> None:
    half = library()["mfma_f32_16x16x16_f16"]
    assert (half.a.layout.run_along_row(), half.a.layout.run_along_column()) == (4, 1)
    assert (half.b.layout.run_along_row(), half.b.layout.run_along_column()) == (1, 4)
    assert (half.c.layout.run_along_row(), half.c.layout.run_along_column()) == (1, 4)
    chunks = library()["mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8"]
    assert chunks.a.layout.run_along_row() == 16


def test_the_banks_that_lanes_touch() -> None:
    layout = library()["mfma_f32_16x16x4_f32"].a.layout
    plain = layout.banks(0, lambda block, row, column: 4 * (64 * row + column), 32)
    assert plain == tuple(lane // 16 for lane in range(64))  # sixteen rows in one bank
    padded = layout.banks(0, lambda block, row, column: 4 * (65 * row + column), 32)
    assert len(set(padded[:16])) == 16


def test_a_part_of_a_layout_lies_where_it_lies_in_the_whole() -> None:
    layout = library()["mfma_f32_32x32x8_f16"].c.layout
    part = layout.restrict(4, 2)
    assert part == {(r, c): layout.slot(r, c) for r in range(4) for c in range(2)}


def test_a_table_without_closed_form_says_so() -> None:
    slots = tuple((lane ^ (lane >> 1), 0) for lane in range(64))  # a Gray code
    layout = Layout(8, 8, 64, 1, slots)
    assert layout.element(3, 0) == (0, 0, 2)
    assert layout.matrix is not None  # but linear it is
    with pytest.raises(NoClosedFormError):
        layout.forward("r", "c")


def test_a_layout_that_is_not_linear_answers_the_same_questions() -> None:
    layout = Layout(12, 16, 64, 3, tuple((index % 64, index // 64) for index in range(192)))
    assert layout.matrix is None
    other = replace(layout, slots=tuple(divmod(index, 3) for index in range(192)))
    assert sorted(layout.compose(other)) == list(range(192))
    assert other.run_along_row() == 1
    with pytest.raises(ValueError, match="other shapes"):
        layout.compose(Layout(16, 12, 64, 3, layout.slots))


def test_layouts_of_other_numbers_of_blocks_are_not_composed() -> None:
    one = Layout(12, 16, 64, 3, tuple((index % 64, index // 64) for index in range(192)))
    two = replace(
        one, elements_per_lane=6, blocks=2,
        slots=tuple((index % 64, index // 64) for index in range(384)),
    )  # fmt: skip
    for ours, theirs in ((one, two), (two, one)):
        with pytest.raises(ValueError, match="other shapes"):
            ours.compose(theirs)
