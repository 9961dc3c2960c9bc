"""Every format: what is written is the layout, or it is refused; and AMD's own tables agree."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl import ArgumentError, ExportError, export_layouts
from mfmadsl.export import FORMATS, read_layouts
from mfmadsl.export.formats import Format
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic, Layout
from tests.conftest import DATA
from tests.export.layouts import HALF, entry, linear_layouts

ENTRIES = list(library().values())
FAMILIES = list(
    {tuple((o.layout, o.sparse) for o in i.operands.values()): i for i in ENTRIES}.values()
)
"""One entry of each of the ways in which the library's operands lie."""

REFUSED: dict[str, Callable[[Intrinsic], bool]] = {
    "triton": lambda i: i.sparse or i.blocks > 1,
    "iree": lambda i: i.sparse,
}
"""What the formats have no words for; the others have words for all of the library."""


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("intrinsic", FAMILIES, ids=lambda i: i.name)
def test_what_is_written_is_read_back_as_the_layouts(intrinsic: Intrinsic, form: str) -> None:
    if form in REFUSED and REFUSED[form](intrinsic):
        with pytest.raises(ExportError, match=f"^{intrinsic.name} (is sparse|multiplies)"):
            export_layouts(intrinsic, form)
        return
    told = read_layouts(export_layouts(intrinsic, form), form)
    expected = {name: operand.layout for name, operand in intrinsic.operands.items()}
    if form == "ck":
        expected = {name: expected[name] for name in "abc"}
    assert told == expected


@pytest.mark.parametrize("form", FORMATS)
def test_one_operand_is_written_alone(form: str) -> None:
    intrinsic = find(HALF)
    for name in "abc":
        told = read_layouts(export_layouts(intrinsic, form, name), form)
        assert told == {name: intrinsic.operand(name).layout}


@given(linear_layouts())
def test_any_linear_map_of_bits_is_a_linear_layout_of_tritons(layout: Layout) -> None:
    text = export_layouts(entry(layout), "triton", "a")
    assert read_layouts(text, "triton") == {"a": layout}


@given(linear_layouts(shuffled_only=True))
def test_any_order_of_bits_is_a_layout_of_cutes(layout: Layout) -> None:
    text = export_layouts(entry(layout), "cute", "c")
    assert read_layouts(text, "cute") == {"c": layout}


@given(linear_layouts(), st.sampled_from([form for form in FORMATS if form != "triton"]))
def test_a_layout_is_written_as_it_is_or_refused(layout: Layout, form: str) -> None:
    refused = ""
    try:
        text = export_layouts(entry(layout), form, "a")
    except ExportError as error:
        refused = str(error)
    if refused:
        assert refused.startswith(f"{HALF}: `a` ")
        assert form not in ("json", "csv")
    else:
        assert read_layouts(text, form) == {"a": layout}


def test_what_is_no_linear_map_has_no_layout_of_tritons() -> None:
    moved = [divmod((x + 1) % 16, 4) for x in range(16)]
    intrinsic = entry(Layout(4, 4, 4, 4, tuple(moved)))
    with pytest.raises(ExportError, match="`a` is not linear in the bits"):
        export_layouts(intrinsic, "triton", "a")


def test_three_elements_a_lane_are_no_bits_but_strides() -> None:
    intrinsic = entry(Layout(4, 3, 4, 3, tuple((i, j) for i in range(4) for j in range(3))))
    with pytest.raises(ExportError, match="its extents are no powers of two"):
        export_layouts(intrinsic, "triton", "a")
    text = export_layouts(intrinsic, "cute", "a")
    assert "Layout<Shape<_4, Int<3>>, Stride<_1, _4>>" in text


def test_a_text_that_is_not_the_layout_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FORMATS["csv"]

    def wrong(*what: Any) -> str:
        return (
            right.write(*what)
            .replace("a,0,0,1,0,0,16:31", "a,0,0,1,1,0,16:31", 1)
            .replace("a,0,1,1,1,0,16:31", "a,0,1,1,0,0,16:31", 1)
        )

    monkeypatch.setattr(
        "mfmadsl.export.formats.FORMATS", {"csv": Format(wrong, right.read, right.operands)}
    )
    with pytest.raises(ExportError, match="not read back as it is"):
        export_layouts(find(HALF), "csv")


TABLES = {path.stem: path for path in sorted((DATA / "register_layouts").glob("*.json"))}
COVERED = [
    (intrinsic, path)
    for intrinsic in ENTRIES
    for name, path in TABLES.items()
    if name.partition(".")[2] in intrinsic.mnemonics and not intrinsic.sparse
]


@pytest.mark.parametrize(("intrinsic", "path"), COVERED, ids=lambda x: getattr(x, "stem", ""))
def test_the_json_says_what_amds_calculator_says(intrinsic: Intrinsic, path: Any) -> None:
    reference = json.loads(path.read_text())["layout"]
    told = json.loads(export_layouts(intrinsic, "json"))
    assert [operand["operand"] for operand in told["operands"]] == ["a", "b", "c"]
    for operand in told["operands"]:
        expected = reference["d" if operand["operand"] == "c" else operand["operand"]]
        found = [[e["register"], *e["bits"], e["lane"]] for e in operand["elements"]]
        assert found == expected, operand["operand"]


def test_the_format_for_triton_is_python() -> None:
    for intrinsic in FAMILIES:
        if not REFUSED["triton"](intrinsic):
            ast.parse(export_layouts(intrinsic, "triton"))


def test_a_chip_without_the_instruction_is_refused() -> None:
    with pytest.raises(ArgumentError, match="is no instruction of gfx908"):
        export_layouts(find("mfma_f32_16x16x32_f16"), "triton", arch="gfx908")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"operands": 3}', '{"operands": [{"operand": "a"}]}', "[" * 100_000,
     '{"blocks": 1, "wave": 1, "operands": [{"operand": "a", "rows": 1, "columns": 2, '
     '"elements": [{"block": 0, "row": 0, "column": 0, "lane": 0, "element": 0}]}]}'],
)  # fmt: skip
def test_json_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ExportError):
        read_layouts(text, "json")


@pytest.mark.parametrize("how", ["twice", "operand", "unknown", "half", "text", "truth"])
def test_json_that_contradicts_itself_is_refused(how: str) -> None:
    told = json.loads(export_layouts(find("mfma_f32_16x16x16_f16"), "json"))
    first = told["operands"][0]
    elements = first["elements"]
    if how == "twice":
        elements.insert(0, {**elements[0], "lane": 63})
    elif how == "operand":
        told["operands"].insert(0, {**first, "elements": elements[::-1]})
    elif how == "unknown":
        first["operand"] = "d"
    else:
        elements[0]["lane"] = {"half": 0.9, "text": "0", "truth": False}[how]
    with pytest.raises(ExportError):
        read_layouts(json.dumps(told), "json")
