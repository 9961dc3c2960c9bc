"""Attention's kernels, under the sanitizer, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import tirx

import mfmadsl
from mfmadsl.error import ArgumentError
from tests.schedule.flash_attention.attended import Case

CHIPS = ("gfx942", "gfx950")
FORMS = {
    "whole tiles": Case(heads=2, queries=128, keys=256, depth=128),
    "grouped heads, causal": Case(2, 4, 130, 200, 64, kv_heads=2, causal=True),
    "more queries than keys": Case(heads=2, queries=100, keys=70, depth=80, causal=True),
    "one key": Case(heads=2, queries=33, keys=1, depth=96, layout="bshd"),
    "a window": Case(queries=300, keys=300, depth=64, window=70),
    "a window of one key": Case(queries=70, keys=90, depth=32, window=1),
    "cap and bias": Case(heads=2, queries=70, keys=90, depth=64, cap=5.0, bias=True, causal=True),
    "wide heads": Case(queries=64, keys=64, depth=256, value_depth=64),
    "narrow values": Case(queries=64, keys=100, depth=192, value_depth=128, scale=3.0),
    "odd widths": Case(queries=64, keys=100, depth=20, value_depth=12),
    "multi-head latent": Case(heads=2, queries=40, keys=90, depth=576, value_depth=512),
    "bfloat16": Case(heads=2, queries=128, keys=200, depth=64, dtype="bfloat16", causal=True),
    "float32 out": Case(queries=64, keys=64, depth=64, out_dtype="float32", log_sum=False),
}


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("form", list(FORMS))
def test_it_is_numpys_in_float64(form: str, arch: str) -> None:
    kernel = FORMS[form].check(arch)
    assert kernel.remarks == ()  # all loops over keys went through the pipeline


SYMBOLIC = [
    Case(2, 2, 77, 150, causal=True, symbolic="queries keys"),
    Case(2, 2, 3, 1, causal=True, symbolic="queries keys"),
    Case(1, 2, 70, 90, bias=True, symbolic="queries keys"),
    Case(1, 2, 129, 65, symbolic="queries keys", index_type="int32"),
    Case(1, 2, 33, 64, layout="bshd", symbolic="keys"),
]


@pytest.mark.parametrize("case", SYMBOLIC, ids=str)
def test_lengths_are_known_at_the_launch(case: Case) -> None:
    case.check()


def test_one_kernel_serves_all_lengths() -> None:
    workload = Case(heads=2, causal=True, symbolic="queries keys").workload()
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload))
    for queries, keys in ((1, 1), (64, 64), (65, 63), (128, 129), (5, 300)):
        case = Case(heads=2, queries=queries, keys=keys, causal=True)
        arguments, o, _ = case.arguments()
        mfmadsl.sanitize(kernel, arguments)
        wanted, _, bound = case.expected()
        assert (np.abs(o - wanted) <= 2.0**-10 * bound + 2.0**-20).all()


DECODING = [
    Case(2, 8, 1, 300, 64, kv_heads=2, causal=True),
    Case(1, 16, 1, 300, 576, value_depth=512, kv_heads=1),
    Case(2, 8, 3, 100, 64, kv_heads=2, causal=True, bias=True),
    Case(1, 6, 2, 100, 64, kv_heads=1, window=30, layout="bshd"),
    Case(1, 4, 1, 900, 64, kv_heads=2, symbolic="keys"),
    Case(1, 4, 1, 7, 64, kv_heads=2, symbolic="keys"),
]


@pytest.mark.parametrize("case", DECODING, ids=str)
def test_few_queries_share_keys_among_heads_and_workgroups(case: Case) -> None:
    case.check()


TILINGS: list[dict[str, Any]] = [
    {"instruction": "mfma_f32_16x16x16_f16", "rows": 32, "k_pack": 2, "value_pack": 2},
    {"instruction": "mfma_f32_16x16x16_f16", "rows": 16, "k_pack": 2},
    {"rows": 64, "waves": 2},
    {"value_pack": 2},
    {"splits": 3},
    {"splits": 5, "rows": 64, "waves": 1},
    {"waves": 1, "keys": 32},
]


@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_every_tiling_is_right(tiling: dict[str, Any]) -> None:
    Case(heads=2, queries=70, keys=150, depth=64, causal=True).check(**tiling)


def test_a_query_that_sees_no_key_has_zeros() -> None:
    case = Case(queries=40, keys=10, causal=True)
    arguments, o, logarithm = case.arguments()
    kernel = mfmadsl.build(mfmadsl.attention_schedule(case.workload()))
    mfmadsl.sanitize(kernel, arguments)
    assert not o[:, :, :30].any()
    assert np.isneginf(logarithm[:, :, :30]).all()
    assert np.isfinite(o).all()


def test_infinities_in_a_bias_mask_keys_and_whole_rows() -> None:
    case = Case(queries=40, keys=70, bias=True)
    case.given[3][:, :, :, ::3] = -np.inf
    case.given[3][:, :, 5] = -np.inf
    arguments, o, _ = case.arguments()
    kernel = mfmadsl.build(mfmadsl.attention_schedule(case.workload()))
    mfmadsl.sanitize(kernel, arguments)
    wanted, _, bound = case.expected()
    assert (np.abs(o - wanted) <= 2.0**-10 * bound + 2.0**-20).all()
    assert not o[:, :, 5].any()


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_many_small_weights_count(arch: str, splits: int) -> None:
    """Each of them is denormal in float16, and together they are a third of the sum."""
    case = Case(queries=16, keys=8000, scale=1e-3, bias=True)
    bias = case.given[3]
    bias[...], bias[..., 5] = -10, 0
    case.check(arch, splits=splits)


def test_large_scores_do_not_overflow() -> None:
    case = Case(queries=40, keys=70, scale=3e3)
    arguments, o, logarithm = case.arguments()
    mfmadsl.sanitize(mfmadsl.build(mfmadsl.attention_schedule(case.workload())), arguments)
    wanted, sums, bound = case.expected()
    # A score of 2^15 has 9 bits behind the point in float32.
    assert (np.abs(o - wanted) <= 2.0**-8 * bound).all()
    assert np.abs(logarithm / sums - 1).max() < 2.0**-20


@pytest.mark.thorough
def test_two_builds_are_the_same() -> None:
    one, other = (
        mfmadsl.build(mfmadsl.attention_schedule(FORMS["cap and bias"].workload())).assembly
        for _ in range(2)
    )
    assert one == other


@pytest.mark.parametrize("value", [-1e9, -1e30, -3.4028234663852886e38])
def test_rows_that_are_masked_by_a_finite_number_are_averages(value: float) -> None:
    case = Case(queries=40, keys=100, bias=True, out_dtype="float32", log_sum=False)
    case.given[3][:, :, 5] = value
    case.given[3][:, :, 7, :80] = value  # a whole step
    case.check()


@pytest.mark.thorough
def test_parts_that_see_no_key_count_for_nothing() -> None:
    case = Case(queries=40, keys=300, bias=True, scale=3.0)
    case.given[3][:, :, :, :250] = -np.inf
    case.given[3][:, :, 5] = -np.inf
    case.check(splits=4)


REFUSED: list[dict[str, Any]] = [
    {"scale": 1e39}, {"cap": 1e-45}, {"scale": 0}, {"window": 2**31 - 1},
    {"kv_heads": 3}, {"dtype": "float32"}, {"layout": "sbhd"},
    {"queries": tirx.Var("n", "float32")},
]  # fmt: skip


@pytest.mark.parametrize("changed", REFUSED, ids=str)
def test_what_no_attention_has_is_refused(changed: dict[str, Any]) -> None:
    given: dict[str, Any] = {"batch": 1, "heads": 2, "queries": 4, "keys": 4, "depth": 16}
    with pytest.raises(ArgumentError, match=f"^{next(iter(changed))}: "):
        mfmadsl.attention(**(given | changed))
