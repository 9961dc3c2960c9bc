"""Sums of groups of k that vector instructions scale and add up, in each order of an iteration."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tvm.s_tir import Schedule

import mfmadsl
from examples.block_scaled.run import PLANS, Plan, arrays, block_scaled_schedule, error

SMALL = {
    "gfx942": replace(PLANS["gfx942"], block=(64, 96), waves=(2, 2)),
    "gfx950": replace(PLANS["gfx950"], block=(96, 64), waves=(2, 2)),
}


def scheduled(plan: Plan, groups: int, overlap: str = "all") -> Schedule:
    m, n = (2 * size for size in plan.block)
    sch = block_scaled_schedule(m, n, 128 * groups, plan)
    if overlap != "all":
        step = next(
            loop for loop in sch.get_loops(sch.get_sblock("C_update"))
            if "mfmadsl.pipeline" in (sch.get(loop).annotations or {})
        )  # fmt: skip
        sch.annotate(step, "mfmadsl.overlap", overlap)
    return sch


def check(arch: str, plan: Plan, groups: int, overlap: str = "all") -> mfmadsl.Kernel:
    kernel = mfmadsl.build(scheduled(plan, groups, overlap), arch)
    assert kernel.remarks == ()
    m, n = (2 * size for size in plan.block)
    given = arrays(m, n, 128 * groups, plan.element, groups)
    given[4][:] = 77
    mfmadsl.sanitize(kernel, given)
    assert error(given) <= 1
    return kernel


@pytest.mark.parametrize("groups", [1, 2, 3, 5])
@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("arch", SMALL)
def test_any_number_of_groups(arch: str, across: bool, groups: int) -> None:
    check(arch, replace(SMALL[arch], across=across), groups)


@pytest.mark.parametrize(
    ("overlap", "stages"), [("nothing", 1), ("loads", 1), ("fragments", 1), ("fragments", 2)]
)
@pytest.mark.parametrize("arch", SMALL)
def test_any_order(arch: str, overlap: str, stages: int) -> None:
    check(arch, replace(SMALL[arch], stages=stages), 4, overlap)


@pytest.mark.parametrize("stages", [1, 2])
def test_tiles_that_lie_twice_in_the_lds(stages: int) -> None:
    check("gfx942", replace(SMALL["gfx942"], block=(64, 64), stages=stages), 5)


@pytest.mark.parametrize("arch", PLANS)
def test_nothing_is_spilled_in_a_long_loop(arch: str) -> None:
    plan = PLANS[arch]
    kernel = mfmadsl.build(block_scaled_schedule(*plan.block, 4096, plan), arch)
    assert kernel.registers.spilled == 0
    assert kernel.remarks == ()


def test_rows_that_the_first_half_has_read_are_loaded_anew_in_the_middle() -> None:
    plan = PLANS["gfx950"]
    kernel = mfmadsl.build(block_scaled_schedule(*plan.block, 4096, plan), "gfx950")
    loop = re.search(
        r"^(\.LBB0_\d+):$(.*?)s_cbranch\w* \1$", kernel.assembly, re.MULTILINE | re.DOTALL
    )
    assert loop is not None
    iterations = re.split(r"s_barrier", loop[2])
    assert len(iterations) == 5  # two halves of two iterations
    assert sum("buffer_load_dwordx4" in part for part in iterations) >= 4


@pytest.mark.parametrize("arch", SMALL)
def test_each_scale_is_of_its_own_group(arch: str) -> None:
    """A scale of 0 takes just the group, the row or the columns that it belongs to."""
    plan = replace(SMALL[arch], block=(64, 128))
    m, n, k = 128, 256, 384
    kernel = mfmadsl.build(block_scaled_schedule(m, n, k, plan), arch)
    given = arrays(m, n, k, plan.element)
    _, sa, _, sb, _ = given
    sa[1, 77] = 0
    sb[1, 2] = 0
    mfmadsl.sanitize(kernel, given)
    assert error(given) <= 1
    assert np.count_nonzero(sa == 0) == np.count_nonzero(sb == 0) == 1
