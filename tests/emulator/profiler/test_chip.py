"""What fits on a compute unit."""

from __future__ import annotations

import pytest

from mfmadsl.emulator.profiler import chip_of, occupancy
from mfmadsl.model import ARCHITECTURES


@pytest.mark.parametrize(
    ("arch", "registers", "lds", "waves", "expected"),
    [
        ("gfx942", (64, 0), 0, 4, (8, 8, "waves")),
        ("gfx942", (128, 0), 0, 4, (4, 4, "registers")),
        ("gfx942", (129, 0), 0, 4, (3, 3, "registers")),  # registers come in eights
        ("gfx942", (128, 128), 0, 8, (2, 1, "registers")),  # one file for both kinds
        ("gfx942", (64, 0), 40000, 4, (1, 1, "LDS")),
        ("gfx950", (64, 0), 40000, 4, (4, 4, "LDS")),
        ("gfx942", (64, 0), 16384, 4, (4, 4, "LDS")),
        ("gfx908", (128, 128), 0, 4, (2, 2, "registers")),  # a file for each kind
        ("gfx908", (24, 0), 0, 4, (10, 10, "waves")),
        ("gfx942", (512, 0), 0, 4, (1, 1, "registers")),
    ],
)
def test_occupancy(
    arch: str, registers: tuple[int, int], lds: int, waves: int, expected: tuple[int, int, str]
) -> None:
    found = occupancy(chip_of(arch), *registers, lds, waves)
    assert (found.waves_per_simd, found.groups, found.limit) == expected


def test_every_chip_of_the_library_is_known() -> None:
    assert [chip_of(arch).arch for arch in ARCHITECTURES] == list(ARCHITECTURES)
    with pytest.raises(ValueError, match="no profile of `gfx1100`, but of: gfx908"):
        chip_of("gfx1100")
