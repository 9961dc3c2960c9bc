"""Reports for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic
from mfmadsl.report import (
    intrinsic_json,
    intrinsic_summary,
    intrinsic_table,
    layout_json,
)
from mfmadsl.report.picture import element_grids, grid_text
from tests.report.tables import COVERED, TABLES


@pytest.mark.parametrize(("intrinsic", "operand", "table"), COVERED)
def test_the_layout_as_json_equals_amds_table(
    intrinsic: Intrinsic, operand: str, table: dict[str, Any]
) -> None:
    found = layout_json(intrinsic, intrinsic.operand(operand))
    assert list(found) == ["name", "operand", "shape", "blocks", "wave", "elements"]
    assert (found["name"], found["operand"]) == (intrinsic.name, operand)
    assert (found["blocks"], found["wave"]) == (table["blocks"], table["wave"])
    rows, columns = found["shape"]
    expected = table["layout"]["d" if operand == "c" else operand]
    assert [
        [e["register"], *e["bits"], e["lane"]] for e in found["elements"]
    ] == [[register, low, high, lane] for register, low, high, lane in expected]  # fmt: skip
    assert [(e["block"], e["row"], e["column"]) for e in found["elements"]] == [
        (block, row, column)
        for block in range(intrinsic.blocks)
        for row in range(rows)
        for column in range(columns)
    ]


def test_every_table_is_the_one_of_an_entry() -> None:
    mnemonics = {m for intrinsic in library().values() for m in intrinsic.mnemonics}
    assert {name.partition(".")[2] for name in TABLES} <= mnemonics


def test_a_layout_as_a_table_names_lane_register_and_bits() -> None:
    (grid,) = element_grids(find("mfma_f32_16x16x16_f16").a)
    lines = grid_text(grid).splitlines()
    assert len(lines) == 18
    assert lines[0].split() == ["|", *(str(k) for k in range(16))]
    assert lines[5].split()[:5] == ["3", "|", "3:0[0:15]", "3:0[16:31]", "3:1[0:15]"]
    assert lines[5].split()[6] == "19:0[0:15]"


def test_the_list_has_a_line_an_intrinsic_in_columns() -> None:
    header, *lines = intrinsic_table(library().values()).splitlines()
    assert header.split()[0] == "NAME"
    assert [line.split()[0] for line in lines] == list(library())
    assert "bfloat16" in lines[0]


def test_json_of_an_intrinsic_survives_a_round_trip() -> None:
    found = intrinsic_json(find("mfma_f32_32x32x8_f16"))
    assert json.loads(json.dumps(found)) == found
    assert found["types"] == {"a": "float16", "b": "float16", "c": "float32"}
    assert found["cycles"]["gfx942"] == 32


def test_a_summary_gives_the_maps_in_closed_form() -> None:
    summary = intrinsic_summary(find("mfma_f32_16x16x16_f16"))
    assert "lane = k // 4 * 16 + i, element = k % 4" in summary
    assert "gfx942 16" in summary


def test_a_summary_says_what_sparse_and_scaled_operands_count() -> None:
    sparse = intrinsic_summary(find("smfmac_f32_16x16x32_f16"))
    assert "a       float16[i, s] in 2 registers a lane: lane = s // 4 * 16 + i" in sparse
    assert "s counts the stored k" in sparse
    scaled = intrinsic_summary(find("mfma_scale_f32_32x32x64_f8f6f4"))
    assert "scale_b float8_e8m0fnu[g, j] in 1 register a lane: lane = g * 32 + j" in scaled
    assert "g counts groups of 32 k" in scaled
