"""Carries out of additions, and the bit above a sum of 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from tests.emulator.waves import put, run, wave


def carry_of(code: str, values: dict[str, np.generic]) -> tuple[int, bool]:
    """What v[0:1] or v0 holds, as a signed number, and the carry of lane 0."""
    waves = wave()
    put(waves, values)
    run(waves, code)
    found = waves.vector[:2, 0, 0].copy().view(np.int64)[0]
    return int(found), bool(waves.scalar[10, 0] & 1)


@pytest.mark.parametrize(
    ("a", "b", "addend"),
    [
        (2, 3, -1), (-2, 3, 1), (2, 3, 0), (-1, 1, 0), (-(2**31), -(2**31), 2**63 - 1),
        (-(2**31), 2**31 - 1, -(2**63)), (0, 0, -1), (7, 0, 5),
    ],
)  # fmt: skip
def test_a_signed_multiply_adds_carry_is_the_sign_of_the_exact_sum(
    a: int, b: int, addend: int
) -> None:
    exact = a * b + addend
    found, carry = carry_of(
        "v_mad_i64_i32 v[0:1], s[10:11], v2, v3, v[4:5]",
        {"v2": np.int32(a), "v3": np.int32(b), "v[4:5]": np.int64(addend)},
    )
    assert found == (exact + 2**63) % 2**64 - 2**63
    assert carry == (exact < 0)


@pytest.mark.parametrize(("a", "b"), [(5, 3), (3, 5), (0, 0), (2**32 - 1, 1)])
def test_the_reversed_subtraction_takes_its_sources_the_other_way(a: int, b: int) -> None:
    for name, first, second in (("v_sub_co_u32_e64", a, b), ("v_subrev_co_u32_e64", b, a)):
        waves = wave()
        put(waves, {"v2": np.uint32(a), "v3": np.uint32(b)})
        run(waves, f"{name} v0, s[10:11], v2, v3")
        assert waves.vector[0, 0, 0] == (first - second) % 2**32
        assert bool(waves.scalar[10, 0] & 1) == (first < second)


@pytest.mark.parametrize(("a", "b"), [(5, 3), (3, 5), (2**32 - 1, 1), (2**32 - 1, 2**32 - 1)])
def test_a_clamped_sum_stops_at_the_end_of_the_range_and_tells_its_carry(a: int, b: int) -> None:
    for name, exact in (
        ("v_add_co_u32_e64", a + b), ("v_sub_co_u32_e64", a - b), ("v_subrev_co_u32_e64", b - a),
    ):  # fmt: skip
        waves = wave()
        put(waves, {"v2": np.uint32(a), "v3": np.uint32(b)})
        run(waves, f"{name} v0, s[10:11], v2, v3 clamp")
        assert waves.vector[0, 0, 0] == min(max(exact, 0), 2**32 - 1)
        assert bool(waves.scalar[10, 0] & 1) == (not 0 <= exact < 2**32)


def test_what_a_clamped_sum_with_a_carry_is_nobody_says() -> None:
    with pytest.raises(EmulationError, match="no manual says what clamp makes of"):
        run(wave(), "v_addc_co_u32_e64 v0, s[10:11], v2, v3, vcc clamp")
