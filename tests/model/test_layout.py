"""Layouts of the library against AMD's calculator, and the laws that every layout keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mfmadsl.language import library
from mfmadsl.model import Intrinsic, Layout, NoClosedFormError

REFERENCE = Path(__file__).parents[1] / "data" / "register_layouts"
FILES = {
    path: intrinsic
    for intrinsic in library().values()
    for mnemonic in intrinsic.mnemonics
    for path in sorted(REFERENCE.glob(f"*.{mnemonic}.json"))
}
OPERANDS = [(i, name) for i in library().values() for name in "abc"]
CHIP_OF_FAMILY = {"cdna1": "gfx908", "cdna2": "gfx90a", "cdna3": "gfx942"}


def test_every_intrinsic_has_a_reference() -> None:
    assert set(FILES.values()) == set(library().values())
    assert len(FILES) == 8  # four instructions, on CDNA1 and CDNA2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_layouts_equal_the_calculators(path: Path) -> None:
    intrinsic, reference = FILES[path], json.loads(path.read_text())
    assert (intrinsic.m, intrinsic.n, intrinsic.k) == tuple(reference[x] for x in "mnk")
    assert dict(intrinsic.cycles)[CHIP_OF_FAMILY[reference["arch"]]] == reference["cycles"]
    for name, key in (("a", "a"), ("b", "b"), ("c", "d")):
        operand = intrinsic.operand(name)
        rows, columns = operand.shape
        places = [operand.location(r, c) for r in range(rows) for c in range(columns)]
        ours = [[p.register, p.low, p.high, p.lane] for p in places]
        assert ours == reference["layout"][key], f"operand {name}"


@pytest.mark.parametrize(("intrinsic", "name"), OPERANDS)
def test_inverse_after_map_is_the_identity(intrinsic: Intrinsic, name: str) -> None:
    layout = intrinsic.operand(name).layout
    for row in range(layout.rows):
        for column in range(layout.columns):
            assert layout.element(*layout.slot(row, column)) == (row, column)


@pytest.mark.parametrize(("intrinsic", "name"), OPERANDS)
def test_expressions_compute_the_table(intrinsic: Intrinsic, name: str) -> None:
    layout = intrinsic.operand(name).layout
    forward, inverse = layout.forward("r", "c"), layout.inverse("x", "e")
    for row in range(layout.rows):
        for column in range(layout.columns):
            lane, register = (form.value(r=row, c=column) for form in forward)
            assert (lane, register) == layout.slot(row, column)
            assert tuple(f.value(x=lane, e=register) for f in inverse) == (row, column)


def test_a_table_without_closed_form_says_so() -> None:
    slots = tuple((lane ^ (lane >> 1), 0) for lane in range(64))  # a Gray code
    layout = Layout(8, 8, 64, 1, slots)
    assert layout.element(3, 0) == (0, 2)
    with pytest.raises(NoClosedFormError):
        layout.forward("r", "c")
