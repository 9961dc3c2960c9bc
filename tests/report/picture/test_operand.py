"""The pictures of an operand, against AMD's tables, and each the other's inverse."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic, Modifiers
from mfmadsl.report.picture.operand import element_grids, register_grids
from tests.emulator.instructions.matrix.test_described import invented
from tests.report.tables import COVERED

PLACE = re.compile(r"(\d+):(\d+)(?:\[(\d+):(\d+)\])?")
TIP = re.compile(r"([A-Z_]+)\[(\d+), (\d+)\](?: of block (\d+))?")
LANE = re.compile(r"lane (\d+), registers? (\d+)(?: and \d+)?, bits (\d+) to (\d+)")


@pytest.mark.parametrize(("intrinsic", "operand", "table"), COVERED)
def test_each_element_is_labelled_as_amds_table_has_it(
    intrinsic: Intrinsic, operand: str, table: dict[str, Any]
) -> None:
    grids = element_grids(intrinsic.operand(operand))
    expected = table["layout"]["d" if operand == "c" else operand]
    found = []
    for grid in grids:
        for row in grid.cells:
            for cell in row:
                place = PLACE.fullmatch(cell.label)
                assert place is not None
                lane, register, low, high = place.groups()
                found.append([int(register), int(low or 0), int(high or 31), int(lane)])
                assert cell.shade == int(lane)
    assert len(grids) == table["blocks"]
    assert [[r, lo, lane] for r, lo, _, lane in found] == [[r, lo, n] for r, lo, _, n in expected]


@st.composite
def looks(draw: st.DrawFn) -> tuple[Intrinsic, str, Modifiers]:
    """An operand of the library under modifiers that its instruction takes."""
    intrinsic = library()[draw(st.sampled_from(sorted(library())))]
    cbsz = abid = blgp = 0
    if "cbsz_abid" in intrinsic.modifiers and not intrinsic.sparse:
        cbsz = draw(st.integers(0, intrinsic.blocks.bit_length() - 1))
        abid = draw(st.integers(0, (1 << cbsz) - 1))
    if "blgp" in intrinsic.modifiers:
        blgp = draw(st.integers(0, 7))
    operand = draw(st.sampled_from(list(intrinsic.operands)))
    return intrinsic, operand, Modifiers(cbsz, abid, blgp)


@given(looks())
def test_the_view_of_registers_is_the_inverse_of_that_of_elements(
    look: tuple[Intrinsic, str, Modifiers],
) -> None:
    """Of each element the two pictures say the same place, under whatever modifiers."""
    intrinsic, name, modifiers = look
    operand = intrinsic.operand(name)
    placed = {}
    for grid in element_grids(operand, modifiers):
        for row in grid.cells:
            for cell in row:
                element, place = cell.tip.split(": ")
                placed[element] = place
    held = {}
    (grid,) = register_grids(operand, modifiers)
    for row in grid.cells:
        for cell in row:
            place, elements = cell.tip.split(": ")
            assert LANE.fullmatch(place)
            assert (cell.shade is None) == (elements == "not read")
            if cell.shade is not None:
                held.update(dict.fromkeys(TIP_SPLIT.split(elements), place))
    assert held == placed


TIP_SPLIT = re.compile(r", (?=[A-Z])")


def test_blocks_that_share_one_of_a_leave_the_others_unread() -> None:
    """CDNA3 ISA, section 7.1.1: with cbsz=1 blocks 2b and 2b + 1 read block 2b + abid."""
    a = find("mfma_f32_4x4x4_16b_f16").a
    (grid,) = register_grids(a, Modifiers(cbsz=1, abid=1))
    read = [any(cell.shade is not None for cell in row) for row in grid.cells]
    assert read == [lane // 4 % 2 == 1 for lane in range(64)]
    assert grid.cells[4][0].label == "0:0,0 +1"
    assert grid.cells[4][0].tip == (
        "lane 4, register 0, bits 0 to 15: A[0, 0] of block 0, A[0, 0] of block 1"
    )


def test_colours_tell_lanes_or_registers() -> None:
    c = find("mfma_f32_32x32x8_f16").c
    by_lane, by_register = (element_grids(c, shading=kind)[0] for kind in ("lane", "register"))
    assert (by_lane.shades, by_register.shades) == (64, 16)
    assert by_lane.cells[4][3].shade == 35  # C[4, 3] is in lane 35, register 0
    assert by_register.cells[4][3].shade == 0
    assert by_register.cells[31][0].shade == 15


def test_what_goes_on_in_the_next_register_says_so() -> None:
    c = find("mfma_f64_16x16x4_f64").c
    assert element_grids(c)[0].cells[0][0].tip.endswith("registers 0 and 1, bits 0 to 63")


def test_a_group_of_a_sparse_operand_is_a_range() -> None:
    (grid,) = register_grids(find("smfmac_f32_16x16x32_f16").a)
    assert grid.cells[0][0].label == "0,0-3"
    assert grid.columns[0] == "0[0:31]"


def test_elements_of_a_row_with_others_between_them_are_no_range() -> None:
    """CDNA3 ISA, section 7.1.3: blgp=1 has all lanes read B from the lower half."""
    (grid,) = register_grids(invented(16, 64).b, Modifiers(blgp=1))
    assert grid.cells[3][2].tip.endswith(": B[2, 3], B[2, 35]")
    assert grid.cells[3][2].label == "2,3 +1"


def test_scales_count_groups_of_k() -> None:
    scaled = find("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8")
    assert [
        (grid.down, grid.across) for scale in scaled.scales for grid in element_grids(scale)
    ] == [("i", "g"), ("g", "j")]
