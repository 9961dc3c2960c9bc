"""Default factors fit every shape that the instruction divides."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language import library
from mfmadsl.model import Intrinsic
from mfmadsl.schedule import ScheduleError, default_factors

extents = st.integers(1, 64)
PLAIN = [i for i in library().values() if not i.sparse and not i.scales and i.blocks == 1]


@given(st.sampled_from(PLAIN), extents, extents, extents)
def test_products_are_the_tiles_and_no_limit_is_passed(
    intrinsic: Intrinsic, m: int, n: int, k: int
) -> None:
    factors = default_factors(intrinsic, m * intrinsic.m, n * intrinsic.n, k * intrinsic.k)
    assert (prod(factors.i), prod(factors.j), prod(factors.k)) == (m, n, k)
    assert factors.i[2] * factors.j[2] * 64 <= 1024
    rows = prod(factors.i[2:]) * intrinsic.m + prod(factors.j[2:]) * intrinsic.n
    depth = prod(factors.k[1:]) * intrinsic.k
    assert rows * depth * intrinsic.a.type.bits // 8 <= 65536


@pytest.mark.parametrize("intrinsic", PLAIN, ids=lambda i: i.name)
def test_a_step_holds_64_bytes_of_each_row(intrinsic: Intrinsic) -> None:
    """Of each row of A and of each column of B, or what one instruction takes if that is more."""
    whole = 64 * intrinsic.k
    factors = default_factors(intrinsic, 64 * intrinsic.m, 64 * intrinsic.n, whole)
    row_bytes = intrinsic.a.type.bits * intrinsic.k // 8
    assert prod(factors.k[1:]) * row_bytes == max(64, row_bytes)


@pytest.mark.parametrize(("shape", "named"), [((8, 16, 16), "M=8"), ((16, 24, 16), "N=24")])
def test_a_shape_that_the_instruction_does_not_divide(
    shape: tuple[int, int, int], named: str
) -> None:
    intrinsic = library()["mfma_f32_16x16x16_f16"]
    with pytest.raises(ScheduleError, match=f"{named} is no multiple of the instruction's 16"):
        default_factors(intrinsic, *shape)
