"""Where the emulator looks for elements, against AMD's tables and the CDNA4 manual."""

from __future__ import annotations

import pytest

from mfmadsl.emulator.instructions.matrix.layout import BlockShape, chunk_of, input_item
from tests.cdna4 import HELD, held


@pytest.mark.parametrize(("operand", "rows", "bits"), HELD)
def test_gfx950_deals_out_k_as_its_manual_says(operand: str, rows: int, bits: int) -> None:
    expected = held(operand, rows, bits)
    k = sum(len(some) for some in expected.values())
    shape = BlockShape(rows, rows, k, 1)
    chunk = chunk_of(shape, rows, bits)
    found: dict[int, list[int]] = {lane: [-1] * len(some) for lane, some in expected.items()}
    for x in range(k):
        lane, item = input_item(shape, rows, 0, x, 0, chunk)
        found[lane][item] = x
    assert found == expected
