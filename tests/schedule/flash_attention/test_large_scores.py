"""Scores of any size: their multiples are rounded, which must cancel out or not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mfmadsl
from tests.schedule.flash_attention.attended import Array, Case

CHIPS = ("gfx90a", "gfx942", "gfx950")


def attended(case: Case, arch: str, splits: int = 1) -> Array:
    """O of a kernel, which walks over the keys in several steps."""
    arguments, o, _ = case.arguments()
    workload = case.workload()
    tiling = replace(mfmadsl.attention_tiling(workload, arch), keys=32, splits=splits)
    schedule = mfmadsl.attention_schedule(workload, arch, tiling)
    mfmadsl.sanitize(mfmadsl.build(schedule, arch), arguments)
    return case.lying(o).astype(np.float64)


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("scale", [0.3, 1e-3, 16.0, 1000.0])
@pytest.mark.parametrize("power", [0, 8, 16, 20])
@pytest.mark.parametrize("arch", CHIPS)
def test_what_all_scores_have_in_common_cancels_out(
    arch: str, power: int, scale: float, splits: int
) -> None:
    """All scores of a query are whole numbers, 2^power and a few more: float32 knows them. They
    grow from step to step."""
    case = Case(queries=40, keys=200, depth=32, scale=scale, out_dtype="float32")
    q, k, _ = case.given
    q[...], k[...] = 0, 0
    q[..., 0], k[..., 0] = 2.0 ** (power // 2), 2.0 ** (power - power // 2)
    q[..., 1], k[..., 1] = 1, np.arange(200) // 7
    wanted, _, bound = case.expected()
    assert (np.abs(attended(case, arch, splits) - wanted) <= 2.0**-10 * bound).all()


@pytest.mark.parametrize("scale", [1e3, 1e5, 1e7, 1e9, 1e20, 1e29])
@pytest.mark.parametrize("arch", CHIPS)
def test_any_scale_will_do(arch: str, scale: float) -> None:
    """Products are whole numbers, so that float32 knows which is the largest."""
    case = Case(queries=40, keys=200, depth=32, scale=scale, out_dtype="float32")
    generator = np.random.default_rng(1)
    for each in case.given[:2]:
        each[...] = generator.integers(-3, 4, each.shape)
    wanted, _, bound = case.expected()
    assert (np.abs(attended(case, arch) - wanted) <= 2.0**-10 * bound + 2.0**-20).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [3e3, 6e4])
@pytest.mark.parametrize("arch", CHIPS)
def test_of_scores_beyond_all_others_one_key_is_left(arch: str, size: float, dtype: str) -> None:
    """A query's own key has the largest score by far, of up to 10^11."""
    case = Case(queries=64, keys=64, depth=64, scale=1.0, dtype=dtype)
    q, k, v = case.given
    q[...], k[...] = 0, 0
    place = np.arange(64)
    q[0, 0, place, place], k[0, 0, place, place] = size, size
    assert np.array_equal(attended(case, arch)[0, 0], v[0, 0].astype(np.float64))


@pytest.mark.parametrize("size", [3e3, 6e4])
@pytest.mark.parametrize("arch", CHIPS)
def test_equal_scores_have_equal_weights_however_large(arch: str, size: float) -> None:
    case = Case(queries=40, keys=150, depth=32, scale=0.7, out_dtype="float32")
    q, k, _ = case.given
    q[...], k[...] = size, size
    wanted, _, bound = case.expected()
    assert (np.abs(attended(case, arch) - wanted) <= 2.0**-10 * bound).all()


@pytest.mark.parametrize("arch", CHIPS)
def test_large_negative_scores_are_scores(arch: str) -> None:
    case = Case(queries=40, keys=150, depth=32, scale=0.7, out_dtype="float32")
    q, k, _ = case.given
    q[...], k[...] = 6e4, -6e4
    k[..., 7:, :] = -6.1e4
    wanted, _, bound = case.expected()
    found = attended(case, arch)
    assert np.isfinite(found).all()
    assert (np.abs(found - wanted) <= 2.0**-10 * bound).all()
