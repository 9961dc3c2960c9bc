"""How much each workgroup of a launch does, and what those cost that do nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import mfmadsl
from mfmadsl.emulator.machine.launch import load_arguments
from mfmadsl.emulator.profiler.main_loop import is_matrix
from mfmadsl.emulator.profiler.matrix_counts import matrix_counts
from mfmadsl.emulator.profiler.occupancy import chip_of
from mfmadsl.emulator.profiler.record import Recorder
from mfmadsl.emulator.run import BUDGET, launch_of, launches_of, run_loaded
from tests.schedule.flash_attention.attended import Case


def counted(kernel: mfmadsl.Kernel, arguments: list[np.ndarray]) -> list[int]:
    """The counts of the first launch."""
    (one, values), *_ = launches_of(kernel, arguments)
    launch = launch_of(one, None, None, None)
    found = matrix_counts(launch, partial(load_arguments, launch, values, True), BUDGET)
    return [int(count) for count in found]


def executed(kernel: mfmadsl.Kernel, arguments: list[np.ndarray]) -> list[int]:
    """What is counted where all of it is run."""
    (one, values), *_ = launches_of(kernel, arguments)
    launch = launch_of(one, None, None, None)
    recorder = Recorder(chip_of(launch.program.arch))
    run_loaded(launch, load_arguments(launch, values, True), BUDGET, recorder)
    matrix = [is_matrix(each) for each in launch.program.instructions]
    counts = [0] * launch.groups
    for trace in recorder.traces:
        counts[trace.group] += sum(matrix[place] for place in trace.places)
    return counts


def working(kernel: mfmadsl.Kernel, arguments: list[np.ndarray]) -> list[int]:
    return [group for group, count in enumerate(counted(kernel, arguments)) if count]


LENGTHS = Case(batch=4, heads=2, kv_heads=1, keys=192, queries=40, lengths=(192, 77, 0, 1))
UNEVEN = {
    "causal": Case(heads=2, queries=300, keys=300, causal=True),
    "the last keys": Case(queries=300, keys=500, window=70),
    "of any length": Case(queries=200, keys=300, symbolic="queries keys", causal=True),
    "lengths": LENGTHS,
    "pages": replace(LENGTHS, page_size=16),
    "one query": replace(LENGTHS, queries=1, page_size=16),
}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("case", UNEVEN.values(), ids=UNEVEN)
def test_workgroups_that_see_different_keys(case: Case, arch: str) -> None:
    workload = case.workload()
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, arch), arch)
    arguments, *_ = case.arguments()
    counts = counted(kernel, arguments)
    assert len(set(counts)) > 1
    assert counts == executed(kernel, arguments)


def test_a_launch_counts_what_all_of_its_workgroups_do() -> None:
    case = Case(queries=600, keys=600, causal=True, log_sum=False)
    workload = case.workload()
    tiling = replace(mfmadsl.attention_tiling(workload), splits=1)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, tiling=tiling))
    arguments, *_ = case.arguments()
    counts = executed(kernel, arguments)
    assert len(set(counts)) == 5
    on_chip = mfmadsl.profile(kernel, arguments).on_chip
    assert on_chip.flops == pytest.approx(sum(counts) * 2 * 32 * 32 * 8)


def grouped(m: int, groups: int, k: int) -> mfmadsl.Kernel:
    """One tile of columns, so that workgroups count tiles of 32 rows."""
    workload = mfmadsl.grouped_matmul(m, 64, k, groups, "float16", "float32")
    found = mfmadsl.gemm_tiling(workload, arch="gfx942")
    tiling = replace(found, block=(32, 64), waves=(1, 2), k_step=64, stages=1)
    schedule = mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=tiling)
    return mfmadsl.build(schedule, arch="gfx942")


def arguments(m: int, groups: int, k: int, ends: list[int]) -> list[np.ndarray]:
    return [
        np.zeros((m, k), np.float16), np.array(ends, np.int32),
        np.zeros((groups, 64, k), np.float16), np.zeros((m, 64), np.float32),
    ]  # fmt: skip


@pytest.mark.parametrize("k", [64, 1024])  # without a loop, and with one
def test_tiles_with_rows_have_work(k: int) -> None:
    """Of the 256 / 32 + 4 tiles those with rows: tile s // 32 + e is the first of group e."""
    m, groups = 256, 4
    kernel = grouped(m, groups, k)

    def of(*ends: int) -> int:
        return len(working(kernel, arguments(m, groups, k, list(ends))))

    assert of(64, 128, 192, 256) == 8
    assert of(256, 256, 256, 256) == 8
    assert of(1, 2, 3, 256) == 11  # one row each, and 253
    assert of(0, 0, 33, 256) == 9


def test_all_of_a_plain_product_have_work() -> None:
    workload = mfmadsl.matmul(128, 128, 512, "float16", "float32")
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx942"), arch="gfx942")
    a, b = np.zeros((128, 512), np.float16), np.zeros((512, 128), np.float16)
    assert set(counted(kernel, [a, b, np.zeros((128, 128), np.float32)])) == {1}


def test_workgroups_without_work_cost_their_start() -> None:
    m, k = 256, 1024
    times = {}
    for groups in (4, 2000):
        kernel = grouped(m, groups, k)
        on_chip = mfmadsl.profile(kernel, arguments(m, groups, k, [m] * groups)).on_chip
        assert on_chip.flops == 2 * m * 64 * k
        times[groups] = on_chip.seconds
    assert times[4] < times[2000]
