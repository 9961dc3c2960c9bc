"""Which problems the kernels refuse, and in what words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.blackwell_gemm.kernels.problem import check
from examples.blackwell_gemm.ladder import STEPS, Step

BY_NAME = {step.name: step for step in STEPS}


@pytest.mark.parametrize(
    ("step", "size", "said"),
    [
        ("v1", (128, 128, 128), "hgemm_v1 computes one tile: K is 64, not 128"),
        ("v1", (256, 128, 64), "hgemm_v1 computes one tile: M is 128, not 256"),
        ("v2", (128, 256, 640), "hgemm_v2 computes one tile: N is 128, not 256"),
        ("v3", (100, 128, 64), "hgemm_v3 takes a multiple of 128 for M, not 100"),
        ("v4", (128, 128, 32), "hgemm_v4 takes a multiple of 64 for K, not 32"),
        ("v5", (128, 64, 64), "hgemm_v5 takes a multiple of 128 for N, not 64"),
        ("v6", (0, 128, 64), "hgemm_v6 takes a multiple of 128 for M, not 0"),
        ("v7", (128, -128, 64), "hgemm_v7 takes a multiple of 128 for N, not -128"),
        ("v8", (128, 128, 64.0), "hgemm_v8 takes a multiple of 64 for K, not 64.0"),
        ("v9", (128, 256, 64), "hgemm_v9 takes a multiple of 256 for M, not 128"),
        ("v10", (256, 256, 64), "hgemm_v10 takes a multiple of 512 for M, not 256"),
        (
            "v3",
            (65536, 128, 65536),
            "hgemm_v3 counts elements in int32, and A has 65536 x 65536 of them",
        ),
    ],
)
def test_a_size_that_does_not_fall_into_tiles(
    step: str, size: tuple[int, int, int], said: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        BY_NAME[step].kernel(size)


@pytest.mark.parametrize(
    ("step", "sms", "said"),
    [
        ("v6", 0, "hgemm_v6 takes a positive multiple of 1 for `sms`, not 0"),
        ("v7", -1, "hgemm_v7 takes a positive multiple of 1 for `sms`, not -1"),
        ("v8", 1.5, "hgemm_v8 takes a positive multiple of 1 for `sms`, not 1.5"),
        ("v9", 3, "hgemm_v9 takes a positive multiple of 2 for `sms`, not 3"),
        ("v10", 0, "hgemm_v10 takes a positive multiple of 2 for `sms`, not 0"),
    ],
)
def test_a_number_of_sms_that_cannot_be(step: str, sms: int, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        BY_NAME[step].kernel(BY_NAME[step].check, sms)


@settings(max_examples=200)
@given(st.tuples(*[st.integers(-300, 600)] * 3))
def test_a_size_is_taken_exactly_if_it_is_positive_and_in_whole_tiles(
    size: tuple[int, int, int],
) -> None:
    fits = all(x > 0 and x % tile == 0 for x, tile in zip(size, (128, 128, 64), strict=True))
    try:
        check("a kernel", *size)
    except ValueError:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_the_sizes_of_the_ladder_are_taken(step: Step) -> None:
    assert step.kernel(step.check, 2) is not None
