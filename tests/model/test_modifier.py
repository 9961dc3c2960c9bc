"""Which blocks and lanes the modifiers choose, as the CDNA3 ISA has it (section 7.1.3)."""

from __future__ import annotations

import pytest

from mfmadsl.model import source_block


@pytest.mark.parametrize(
    ("cbsz", "abid", "sources"),
    [
        (0, 0, [0, 1, 2, 3, 4, 5, 6, 7]),
        (1, 0, [0, 0, 2, 2, 4, 4, 6, 6]),
        (1, 1, [1, 1, 3, 3, 5, 5, 7, 7]),
        (2, 0, [0, 0, 0, 0, 4, 4, 4, 4]),
        (2, 1, [1, 1, 1, 1, 5, 5, 5, 5]),
        (2, 2, [2, 2, 2, 2, 6, 6, 6, 6]),
        (3, 5, [5, 5, 5, 5, 5, 5, 5, 5]),
    ],
)
def test_one_block_of_a_group_is_read_by_all_of_it(
    cbsz: int, abid: int, sources: list[int]
) -> None:
    assert [source_block(block, cbsz, abid) for block in range(8)] == sources
