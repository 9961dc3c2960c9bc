"""The chips by name."""

from __future__ import annotations

import pytest

from mfmadsl.model import architecture


def test_gfx950_has_more_lds() -> None:
    assert architecture("gfx942").lds_bytes == 64 * 1024
    assert architecture("gfx950").lds_bytes == 160 * 1024


def test_an_unknown_chip_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'gfx1100' is an RDNA chip.*gfx908.*gfx950"):
        architecture("gfx1100")
