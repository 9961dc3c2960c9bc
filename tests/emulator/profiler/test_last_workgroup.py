"""What the last workgroup of a tile does is in the profile, and in the launch's bytes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import mfmadsl
from mfmadsl.emulator.profiler.profile import Profile
from mfmadsl.schedule import Tiling, gemm_schedule
from tests.schedule.matrix_core.gemm.workloads import Workload

TILING = Tiling((16, 32), 64, (1, 2), "mfma_f32_16x16x16_f16", 2, split_k=3)
PARTS, RESULT = 3 * 16 * 64 * 4, 16 * 64 * 4  # bytes


@cache
def kernel(one_launch: bool) -> mfmadsl.Kernel:
    tiling = replace(TILING, one_launch=one_launch)
    return mfmadsl.build(gemm_schedule(Workload(16, 64, 24 * 64).function(), tiling=tiling))


def profiled(built: mfmadsl.Kernel) -> Profile:
    return mfmadsl.profile(built, list(Workload(16, 64, 24 * 64).operands()))


def test_the_last_one_of_three_reads_all_parts() -> None:
    one, two = profiled(kernel(True)).on_chip, profiled(kernel(False)).on_chip
    assert (one.launches, two.launches) == (1, 2)
    assert one.traffic.stored == two.traffic.stored == PARTS + RESULT
    assert one.traffic.requested == pytest.approx(two.traffic.requested, rel=0.02)
    gap = two.product.launch / 1e9
    assert two.seconds - 2 * gap < one.seconds < two.seconds - gap / 2


def test_who_waits_for_its_stores_waits_for_memory() -> None:
    """Without `buffer_wbl2` the wait behind it is for the L2 only."""
    whole = kernel(True)
    text = whole.assembly.replace("\tbuffer_wbl2 sc1", "\ts_nop 0")
    assert text != whole.assembly
    without = profiled(replace(whole, assembly=text)).on_chip.seconds
    product = profiled(whole).on_chip.product
    more = profiled(whole).on_chip.seconds - without
    assert 0.5 * product.mall_latency < more * 1e9 < 2 * product.memory_latency


def test_a_kernel_whose_workgroups_are_never_the_last() -> None:
    """Counts that nobody goes on for cost an atomic each."""
    whole = kernel(True)
    text = whole.assembly.replace("s_cbranch_scc1", "s_branch", 1)
    assert text != whole.assembly
    stored = profiled(replace(whole, assembly=text)).on_chip.traffic.stored
    assert stored == PARTS
