"""How much each workgroup of a launch does, and what those cost that do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import mfmadsl
from mfmadsl.emulator.machine.launch import Launch, load_arguments
from mfmadsl.emulator.profiler.known_chip import chip_of
from mfmadsl.emulator.profiler.main_loop import is_matrix
from mfmadsl.emulator.profiler.matrix_counts import are_confirmed, matrix_counts
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
    return executed_of(launch, values)


def executed_of(launch: Launch, values: Sequence[Any]) -> list[int]:
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


@pytest.mark.thorough
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


HEAD = """	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
k:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32 v1, s2
	v_mov_b32 v2, 0
	v_mov_b32 v3, 1
	s_mov_b64 s[20:21], exec
	s_waitcnt lgkmcnt(0)
"""
TAIL = """	s_endpgm
	.amdhsa_kernel k
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_next_free_vgpr 48
		.amdhsa_next_free_sgpr 60
		.amdhsa_accum_offset 24
		.amdhsa_group_segment_fixed_size 4096
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .args:
      - {.name: x, .offset: 0, .size: 8, .value_kind: global_buffer}
...
	.end_amdgpu_metadata
"""
MATRIX = "	v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]\n"
LOOP = f"La:\n{MATRIX}	s_sub_u32 s10, s10, 1\n	s_cmp_lg_u32 s10, 0\n	s_cbranch_scc1 La\n"
BY_HAND = {
    "as often as a workgroup's number says": f"	s_add_u32 s10, s2, 1\n{LOOP}",
    "until no lane is left": f"""Ll:
{MATRIX}	v_cmp_lt_u32 vcc, v2, v1
	v_add_u32 v2, 1, v2
	s_and_b64 exec, exec, vcc
	s_cbranch_execz Le
	s_branch Ll
Le:
	s_mov_b64 exec, s[20:21]
""",
    "past a branch of no lanes": f"""	v_cmp_lt_u32 vcc, 1, v1
	s_and_saveexec_b64 s[8:9], vcc
	s_cbranch_execz Le
	s_branch Lx
Le:
{MATRIX}{MATRIX}Lx:
	s_mov_b64 exec, s[20:21]
{MATRIX}""",
    "lanes that keep what they had": f"""	v_mov_b32 v8, s2
	s_mov_b64 exec, 1
	v_mov_b32 v8, 7
	s_mov_b64 exec, s[20:21]
	v_readlane_b32 s10, v8, 5
	s_add_u32 s10, s10, 1
{LOOP}""",
    "a flag that it stores": f"""	s_cmp_lg_u32 s2, 0
	s_cbranch_scc1 Lw
	global_store_dword v2, v3, s[4:5]
	s_waitcnt vmcnt(0)
Lw:
	global_load_dword v9, v2, s[4:5] sc0 sc1
	s_waitcnt vmcnt(0)
	v_cmp_ne_u32 vcc, 0, v9
	s_cbranch_vccz Lw
{MATRIX}""",
    "a number from the LDS": f"""	ds_write_b32 v2, v1
	s_waitcnt lgkmcnt(0)
	ds_read_b32 v9, v2
	s_waitcnt lgkmcnt(0)
	v_readfirstlane_b32 s10, v9
	s_add_u32 s10, s10, 1
{LOOP}""",
}


def by_hand(body: str) -> tuple[Launch, list[np.ndarray]]:
    arguments = [np.zeros(64, np.int32)]
    return launch_of(HEAD + body + TAIL, (6,), (64,), None), arguments


@pytest.mark.parametrize("body", BY_HAND.values(), ids=BY_HAND)
def test_what_is_counted_is_executed_or_all_are_alike(body: str) -> None:
    launch, arguments = by_hand(body)
    counts = executed_of(launch, arguments)
    found = matrix_counts(launch, partial(load_arguments, launch, arguments, True), BUDGET)
    is_alike = "ds_read" in body or "global_load" in body
    assert list(found) == ([1] * 6 if is_alike else counts)


def test_what_a_kernel_stores_itself_is_not_counted() -> None:
    """It stores the number of iterations and reads it again: without the store it is another."""
    body = f"""	v_lshlrev_b32 v2, 2, v1
	v_add_u32 v3, 3, v1
	global_store_dword v2, v3, s[4:5]
	s_waitcnt vmcnt(0)
	global_load_dword v9, v2, s[4:5]
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s10, v9
	s_add_u32 s10, s10, 1
{LOOP}"""
    launch, arguments = by_hand(body)
    arguments[0][:] = range(64)
    counts = matrix_counts(launch, partial(load_arguments, launch, arguments, True), BUDGET)
    recorder = Recorder(chip_of("gfx942"))
    loaded = load_arguments(launch, arguments, True)
    run_loaded(launch, loaded, BUDGET, recorder, np.array([2]))
    assert not are_confirmed(counts, launch.program, recorder.traces)
    profile = mfmadsl.profile(HEAD + body + TAIL, arguments, (6,), (64,))
    assert profile.on_chip.flops == 6 * 4 * 2 * 32 * 32 * 8  # all as the first


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
