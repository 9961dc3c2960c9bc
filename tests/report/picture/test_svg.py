"""The SVG picture: well formed, and with every cell."""

from __future__ import annotations

from xml.etree import ElementTree

from mfmadsl.language import find
from mfmadsl.report.picture import element_grids, svg
from mfmadsl.report.picture.grid import Cell, grid_of

SVG = "{http://www.w3.org/2000/svg}"


def test_each_cell_is_a_box_with_label_and_title() -> None:
    operand = find("mfma_f32_16x16x16_f16").a
    root = ElementTree.fromstring(svg(element_grids(operand)))
    drawn = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    assert len(drawn) == 256
    told = {group.findtext(f"{SVG}title"): group.findtext(f"{SVG}text") for group in drawn}
    assert told["A[3, 5]: lane 19, register 0, bits 16 to 31"] == "19:0[16:31]"
    assert len({group.find(f"{SVG}rect").get("fill") for group in drawn}) == 64  # type: ignore[union-attr]


def test_the_boxes_do_not_overlap_and_lie_inside() -> None:
    grids = element_grids(find("mfma_f32_4x4x4_16b_f16").c)
    root = ElementTree.fromstring(svg(grids))
    width, height = (float(root.get(each, "")) for each in ("width", "height"))
    corners = set()
    for group in root.findall(f"{SVG}g"):
        left, top = map(float, group.get("transform", "")[10:-1].split(","))
        for box in group.iter(f"{SVG}rect"):
            x, y = left + float(box.get("x", "")), top + float(box.get("y", ""))
            assert x >= 0
            assert x + float(box.get("width", "")) <= width
            assert y + float(box.get("height", "")) <= height
            corners.add((x, y))
    assert len(corners) == 16 * 16


def test_text_is_escaped() -> None:
    grid = grid_of("<&>", ("<", "&"), (1, 1), 1, lambda *_: Cell("<b>", 0, '"<&>"'))
    root = ElementTree.fromstring(svg([grid]))
    assert "<b>" in [text.text for text in root.iter(f"{SVG}text")]
