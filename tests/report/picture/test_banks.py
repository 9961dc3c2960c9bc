"""The banks of a tile: conflicts counted once more from what the picture says of each word."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from mfmadsl.error import ArgumentError
from mfmadsl.language import find
from mfmadsl.model import architecture, packed
from mfmadsl.report.picture.banks import bank_grids
from mfmadsl.report.picture.grid import Grid

TITLE = re.compile(r"takes (\d+) cycles, (\d+) without conflicts")
READ = re.compile(r"byte (\d+), bank (\d+); lane (\d+) reads it in phase (\d+)")


def cycles_seen(grid: Grid) -> int:
    """In each phase the most words of one bank, by the tips of the cells."""
    banks: dict[int, Counter[int]] = defaultdict(Counter)
    for row in grid.cells:
        for cell in row:
            if found := READ.search(cell.tip):
                _, bank, _, phase = map(int, found.groups())
                banks[phase][bank] += 1
                assert cell.marked == (phase == 0)
    return sum(max(each.values()) for each in banks.values())


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("instruction", "k_pack"),
    [
        ("mfma_f32_16x16x16_f16", 1), ("mfma_f32_16x16x16_f16", 2), ("mfma_f32_32x32x8_f16", 2),
        ("mfma_f32_32x32x2_f32", 1), ("mfma_f64_16x16x4_f64", 1),
    ],
)  # fmt: skip
def test_the_cycles_of_the_title_are_those_of_the_words(
    instruction: str, k_pack: int, arch: str, name: str
) -> None:
    plain, swizzled = bank_grids(packed(find(instruction), k_pack), name, architecture(arch))
    for grid in (plain, swizzled):
        told = TITLE.search(grid.title)
        assert told is not None
        assert cycles_seen(grid) == int(told[1]) >= int(told[2])
    assert cycles_seen(swizzled) <= cycles_seen(plain)


def test_rows_of_128_bytes_collide_and_the_swizzle_mends_it() -> None:
    """Sixteen rows start in the same bank of 32: eight lanes at once need one bank."""
    plain, swizzled = bank_grids(
        packed(find("mfma_f32_16x16x16_f16"), 2), "a", architecture("gfx942")
    )
    assert {row[0].label for row in plain.cells} == {"0"}
    assert TITLE.search(plain.title)[1] != TITLE.search(swizzled.title)[1]  # type: ignore[index]
    assert TITLE.search(swizzled.title)[1] == TITLE.search(swizzled.title)[2]  # type: ignore[index]
    assert len({row[0].label for row in swizzled.cells[:8]}) == 8


def test_a_swizzle_moves_words_within_their_row_only() -> None:
    plain, swizzled = bank_grids(
        packed(find("mfma_f32_16x16x16_f16"), 1), "b", architecture("gfx942")
    )
    for before, after in zip(plain.cells, swizzled.cells, strict=True):
        assert sorted(cell.label for cell in before) == sorted(cell.label for cell in after)


@pytest.mark.parametrize(
    ("instruction", "name", "message"),
    [
        ("mfma_f32_16x16x16_f16", "c", "only a and b"),
        ("mfma_f32_4x4x4_16b_f16", "a", "several blocks"),
        ("mfma_scale_f32_16x16x128_f8f6f4_fp4_fp4", "a", "part of a byte"),
    ],
)
def test_what_lies_in_no_tile_is_refused(instruction: str, name: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        bank_grids(packed(find(instruction), 1), name, architecture("gfx950"))
