"""How many workgroups share a compute unit's vector L1."""

from __future__ import annotations

import pytest

from mfmadsl.model import architecture
from mfmadsl.passes.main_loop.analysis.register_use import sharing_lines

KIB = 1024


@pytest.mark.parametrize(
    ("arch", "lds", "sums", "waves", "groups"),
    [
        ("gfx942", 64 * KIB, 128, 8, 1),  # the LDS has no room for another one
        ("gfx942", 32 * KIB, 128, 8, 1),  # nor have the registers: 4 waves a SIMD with 128 sums
        ("gfx942", 32 * KIB, 64, 4, 2),
        ("gfx950", 64 * KIB, 128, 8, 1),
        ("gfx950", 64 * KIB, 64, 4, 2),
        ("gfx950", 16 * KIB, 16, 4, 8),  # 512 registers of a SIMD, for 64 of a wave
        ("gfx950", 160 * KIB, 256, 16, 1),  # there is one, whatever it takes
    ],
)
def test_room_in_the_lds_and_in_registers(
    arch: str, lds: int, sums: int, waves: int, groups: int
) -> None:
    assert sharing_lines(architecture(arch), lds, sums, waves) == groups
