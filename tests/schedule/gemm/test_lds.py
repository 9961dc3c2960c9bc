"""No access of the LDS has a bank conflict: the profiler's banks, measured on chips, say so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.emulator.profiler.chip import chip_of
from mfmadsl.emulator.profiler.lds_cycles import lds_cycles
from mfmadsl.model import ARCHITECTURES
from mfmadsl.schedule.writer.lds import LdsTile, Swizzle, TransposedTile, swizzle_for
from mfmadsl.schedule.writer.staging import ColumnStaging, RowStaging, group_of

LANES = np.arange(64)
CHIPS = ["gfx942", "gfx950"]
ROW_BYTES = [32, 64, 128, 256]


def conflicts(arch: str, words: np.ndarray, size: int, reads: bool) -> int:
    """Cycles beyond the least that lanes at these words of the LDS need."""
    addresses = np.asarray(words, dtype=np.int64)[None] * 4
    active = np.ones((1, 64), bool)
    cycles, least = lds_cycles(chip_of(arch), addresses, active, size, reads)
    return int(cycles[0] - least[0])


def tile(arch: str, row_bytes: int) -> LdsTile:
    return LdsTile(256, row_bytes, swizzle_for(row_bytes, ARCHITECTURES[arch].lds_read_banks))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("rows", "row_bytes"), [(32, 64), (32, 128), (32, 256), (16, 128), (16, 256)]
)  # a tile has two register steps at least
def test_fragments_are_read_without_conflicts(arch: str, row_bytes: int, rows: int) -> None:
    groups = 64 // rows
    for chunk in range(0, row_bytes // 16 - groups + 1, groups):
        words = tile(arch, row_bytes).word(LANES % rows, chunk + LANES // rows)
        assert conflicts(arch, words, 16, reads=True) == 0


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("row_bytes", ROW_BYTES)
def test_chunks_are_written_without_conflicts(arch: str, row_bytes: int) -> None:
    staging = RowStaging(256, row_bytes, 2, 256)
    words = tile(arch, row_bytes).word(*staging.place(LANES))
    assert conflicts(arch, words, 16, reads=False) == 0


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [16, 32, 64, 256])
def test_rows_that_were_turned_around_are_written_without_conflicts(
    arch: str, rows: int, element_bytes: int
) -> None:
    width = group_of(element_bytes) * element_bytes
    staging = ColumnStaging(rows, 128, element_bytes, 256, width)
    group, chunk, half = staging.place(0, LANES)
    for row in range(staging.group):
        words = tile(arch, 128).word(group * staging.group + row, chunk) + half * 2
        assert conflicts(arch, words, 8, reads=False) == 0


@pytest.mark.parametrize("element_bytes", [1, 2])
@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("width", [128, 256, 512])
def test_transposing_reads_have_no_conflicts(element_bytes: int, rows: int, width: int) -> None:
    turned = TransposedTile(width // element_bytes, 64, element_bytes)
    at_once, chunk = turned.k_at_once, 16 // element_bytes
    lanes = 16 // at_once
    k = LANES // rows * chunk + LANES % 16 // lanes
    row = LANES % rows // 16 * 16 + LANES % lanes * at_once
    assert conflicts("gfx950", turned.word(k, row), 8, reads=True) == 0


def test_without_a_swizzle_there_are_conflicts() -> None:
    plain = LdsTile(256, 128, Swizzle(0, 0))
    assert conflicts("gfx942", plain.word(LANES % 32, LANES // 32), 16, reads=True) > 0


@given(st.sampled_from(ROW_BYTES), st.sampled_from([32, 64]), st.integers(0, 7))
def test_a_swizzle_is_linear_where_bits_are_apart(row_bytes: int, banks: int, bits: int) -> None:
    swizzle = swizzle_for(row_bytes, banks)
    for low in range(1 << bits):
        assert swizzle(low + (5 << bits)) == swizzle(low) ^ swizzle(5 << bits)


@given(st.sampled_from(ROW_BYTES), st.sampled_from(CHIPS), st.integers(0, 1000))
def test_every_chunk_has_its_own_words(row_bytes: int, arch: str, first: int) -> None:
    swizzle = swizzle_for(row_bytes, ARCHITECTURES[arch].lds_read_banks)
    tile = LdsTile(64, row_bytes, swizzle, first)
    words = {tile.word(row, chunk) for row in range(64) for chunk in range(row_bytes // 16)}
    assert words == set(range(first, first + tile.bytes // 4, 4))


@pytest.mark.parametrize("element_bytes", [1, 2])
def test_every_element_of_a_transposed_tile_has_its_own_place(element_bytes: int) -> None:
    tile = TransposedTile(64, 32, element_bytes)
    words = [tile.word(k, row) for k in range(32) for row in range(0, 64, 4 // element_bytes)]
    assert sorted(words) == list(range(tile.bytes // 4))
