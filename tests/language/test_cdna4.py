"""What the library says of gfx950's inputs against the CDNA4 manual."""

from __future__ import annotations

import pytest

from mfmadsl.language import library
from mfmadsl.model import Intrinsic, Operand
from tests.cdna4 import HELD, held

ADDED = [
    i for i in library().values()
    if i.sparse and i.chips == ("gfx950",) and not i.name.endswith("_ocp")
]  # fmt: skip
SCALED = [i for i in library().values() if i.scales]


def lanes_of(operand: Operand, rows: int) -> dict[int, list[int]]:
    """Lane -> the k of row 0 that it holds, in the order of its registers."""
    layout = operand.layout
    found = {}
    for lane in range(0, 64, rows):
        places = [layout.element(lane, register) for register in range(layout.elements_per_lane)]
        found[lane] = [column if operand.name == "a" else row for _, row, column in places]
    return found


def test_these_are_all() -> None:
    assert len(ADDED) == 14
    assert len(HELD) == 10


@pytest.mark.parametrize("intrinsic", ADDED, ids=lambda i: i.name)
def test_b_of_the_sparse_instructions_goes_in_chunks_round_the_lanes(intrinsic: Intrinsic) -> None:
    expected = held("smfmac", intrinsic.n, intrinsic.b.type.bits)
    assert lanes_of(intrinsic.b, intrinsic.n) == expected


@pytest.mark.parametrize("intrinsic", SCALED, ids=lambda i: i.name)
def test_inputs_of_the_scaled_instructions(intrinsic: Intrinsic) -> None:
    for operand, rows in ((intrinsic.a, intrinsic.m), (intrinsic.b, intrinsic.n)):
        assert lanes_of(operand, rows) == held("f8f6f4", rows, operand.type.bits)


@pytest.mark.parametrize("intrinsic", SCALED, ids=lambda i: i.name)
def test_a_scale_belongs_to_32_consecutive_k(intrinsic: Intrinsic) -> None:
    scale_a, scale_b = intrinsic.scales
    for group in range(intrinsic.k // 32):
        assert scale_a.layout.slot(0, group) == (intrinsic.m * group, 0)
        assert scale_b.layout.slot(group, 0) == (intrinsic.n * group, 0)
