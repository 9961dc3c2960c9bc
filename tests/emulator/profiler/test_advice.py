"""Advice: kernels that break a rule are told so, and those that follow it are faster by the model
and told nothing of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import mfmadsl
from mfmadsl.emulator.profiler import Occupancy, Profile
from mfmadsl.emulator.profiler.advice import advice_on, headline

SHAPE = 1024, 1024, 512


@cache
def profiled(**fields: Any) -> Profile:
    """A product on an MI300X whose default tiling has other fields."""
    m, n, k = SHAPE
    workload = mfmadsl.matmul(m, n, k, "float16", "float32", True)
    tiling = replace(mfmadsl.gemm_tiling(workload, arch="gfx942"), **fields)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, tiling=tiling), arch="gfx942")
    arrays = [np.ones((m, k), np.float16), np.ones((n, k), np.float16), np.zeros((m, n), "f4")]
    return mfmadsl.profile(kernel, arrays)


def rules(profile: Profile) -> set[str]:
    return {each.rule for each in advice_on(profile)}


WIDE = {"block": (256, 128), "waves": (2, 2), "k_step": 32, "k_waves": 1, "split_k": 1}
PLAIN = {"block": (128, 128), "waves": (2, 2), "k_step": 64, "k_waves": 1, "split_k": 1}


@pytest.mark.parametrize(
    ("rule", "broken", "followed"),
    [
        ("idle-compute-units", WIDE, PLAIN | {"block": (64, 64), "waves": (1, 1)}),
        ("bank-conflicts", PLAIN | {"swizzle": False}, PLAIN),
        ("full-waits", PLAIN | {"overlap": "nothing"}, PLAIN | {"overlap": "all"}),
    ],
)
def test_who_breaks_a_rule_is_told_and_gains_by_following_it(
    rule: str, broken: dict[str, Any], followed: dict[str, Any]
) -> None:
    slow, fast = profiled(**broken), profiled(**followed)
    assert rule in rules(slow)
    assert rule not in rules(fast)
    assert fast.on_chip.seconds < slow.on_chip.seconds


def test_a_conflict_is_told_at_the_worst_line() -> None:
    profile = profiled(**PLAIN, swizzle=False)
    (told,) = (each for each in advice_on(profile) if each.rule == "bank-conflicts")
    worst = max(profile.lds, key=lambda x: (x.cycles - x.least_cycles) * x.times)
    assert f"line {worst.line}, `{worst.instruction}`" in told.text


def test_units_without_work_are_counted() -> None:
    (told,) = (x for x in advice_on(profiled(**WIDE)) if x.rule == "idle-compute-units")
    assert told.text.startswith("Only 32 of 304 compute units have a workgroup")


def test_spilled_registers_and_lone_workgroups() -> None:
    """Of profiles that say so: no kernel of the suite spills."""
    plain = profiled(**PLAIN)
    spilling = replace(plain, registers=replace(plain.registers, spilled=12))
    (first, *_) = advice_on(spilling)
    assert (first.rule, first.text[:12]) == ("spilled-registers", "12 registers")
    waiting = replace(plain.on_chip, shares=dict.fromkeys(plain.on_chip.shares, 0.1))
    lone = replace(plain, on_chip=waiting, occupancy=Occupancy(1, 1, "LDS"))
    assert "lone-workgroup" in rules(lone)
    assert "lone-workgroup" not in rules(replace(lone, occupancy=Occupancy(2, 2, "LDS")))
    assert headline(lone).startswith("It waits: ")


def test_lines_of_which_little_is_wanted() -> None:
    plain = profiled(**PLAIN)
    whole = replace(plain.whole, memory_bytes=4096, line_bytes=4096 * 8)
    busy = replace(plain.on_chip, shares={**plain.on_chip.shares, "L1": 0.9})
    (told,) = (
        each
        for each in advice_on(replace(plain, whole=whole, on_chip=busy))
        if each.rule == "sparse-lines"
    )
    assert told.text.startswith("Memory gives 8.0 bytes of cache lines for each")
    assert "sparse-lines" not in rules(plain)


def test_a_headline_has_the_limit_and_the_first_advice() -> None:
    profile = profiled(**PLAIN, swizzle=False)
    first = advice_on(profile)[0].text
    limit = profile.on_chip.limit
    share = f"{profile.on_chip.shares[limit]:.0%}"
    assert headline(profile) == f"It is limited by {limit}, at {share}. {first}"
