"""Profiles of whole kernels."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from mfmadsl.emulator.profiler import Profile, profile
from mfmadsl.emulator.profiler.main_loop import main_loop
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.gemm import Gemm
from mfmadsl.language import find
from mfmadsl.report.profile import profile_json, profile_table
from mfmadsl.report.timeline import timeline_json
from tests.emulator.waves import kernel


@pytest.fixture(scope="module")
def looping() -> Profile:
    gemm = Gemm(find("mfma_f32_16x16x16_f16"), "gfx942", 256, 128, 512, shared_scope="shared")
    return profile(gemm.build(), list(gemm.operands()))


def test_a_gemm_is_counted(looping: Profile) -> None:
    """A wave multiplies 64 x 64 x 512 with instructions of 16 x 16 x 16."""
    assert looping.whole.instructions["matrix"] == 4 * 4 * 32
    assert looping.whole.matrix_cycles == 4 * 4 * 32 * 16
    assert looping.loop is not None
    steps = looping.whole.instructions["matrix"] // looping.loop.instructions["matrix"]
    assert steps * looping.loop.instructions["matrix"] == looping.whole.instructions["matrix"]
    assert looping.loop.instructions["barrier"] == 2 * 2  # of two iterations
    assert looping.whole.lines[0] < looping.loop.lines[0] < looping.loop.lines[1]


def test_bytes_from_memory_are_counted(looping: Profile) -> None:
    """A workgroup loads 128 rows of A and 128 columns of B, and stores 128 x 128 of C.

    The last turn fetches its step of 64 bytes a row once more, which is cheaper than a branch.
    """
    loads, stores = 2 * 128 * (512 * 2 + 64), 128 * 128 * 4
    assert looping.whole.memory_bytes * 4 == loads + stores
    assert looping.whole.line_bytes >= looping.whole.memory_bytes


def test_conflicts_are_told_by_instruction(looping: Profile) -> None:
    total = sum((a.cycles - a.least_cycles) * a.times for a in looping.lds)
    assert total == pytest.approx(looping.whole.lds_conflict_cycles * looping.waves, rel=0.01)
    assert all(a.cycles >= a.least_cycles for a in looping.lds)


def test_the_model_keeps_its_bounds(looping: Profile) -> None:
    timing = looping.timing
    assert timing.cycles >= looping.matrix_bound
    assert timing.cycles >= timing.busy["lds"]
    assert 0 < looping.matrix_use <= 1
    assert looping.limits[0].startswith(("LDS is busy", "the matrix cores are busy"))


def test_the_caller_s_arrays_stay_as_they_are() -> None:
    result = np.full(64, 7, np.uint32)
    code = "\n	s_load_dwordx2 s[4:5], s[0:1], 0x0\n	v_lshlrev_b32_e32 v1, 2, v0\n" \
        "	s_waitcnt lgkmcnt(0)\n	global_store_dword v1, v0, s[4:5]"  # fmt: skip
    found = profile(kernel(code), [result], (1,), (64,))
    assert (result == 7).all()
    assert found.loop is None
    assert found.whole.memory_bytes == found.whole.line_bytes == 256


@pytest.mark.parametrize(("shift", "sectors"), [(2, 8), (4, 32), (5, 64), (7, 64)])
def test_stores_write_sectors_of_32_bytes(shift: int, sectors: int) -> None:
    """A word of each of 64 lanes, 4 to 128 bytes apart: a line waits in the L2 for the others."""
    result = np.zeros(64 << shift >> 2, np.uint32)
    code = f"\n	s_load_dwordx2 s[4:5], s[0:1], 0x0\n	v_lshlrev_b32_e32 v1, {shift}, v0\n" \
        "	s_waitcnt lgkmcnt(0)\n	global_store_dword v1, v0, s[4:5]"  # fmt: skip
    found = profile(kernel(code), [result], (1,), (64,))
    assert found.on_chip.traffic.stored == 32 * sectors
    assert found.whole.line_bytes == max(256, 64 << min(shift, 7))


STORING = kernel(
    "\n	s_load_dwordx2 s[4:5], s[0:1], 0x0\n	v_lshlrev_b32_e32 v1, 2, v0\n"
    "	s_waitcnt lgkmcnt(0)\n	global_store_dword v1, v0, s[4:5]"
)


@pytest.mark.parametrize(
    ("grid", "threads", "full", "expected"),
    [
        (1, 64, False, 1),
        (304, 64, False, 1),  # one for each compute unit of an MI300X
        (305, 64, False, 2),
        (305, 64, True, 32),
        (7, 64, True, 7),
        (20000, 64, False, 32),
        (305, 192, True, 10),
    ],
)
def test_the_grid_is_dealt_out_to_the_whole_chip(
    grid: int, threads: int, full: bool, expected: int
) -> None:
    found = profile(STORING, [np.zeros(threads, np.uint32)], (grid,), (threads,), full=full)
    assert found.workgroups == expected
    assert found.waves == expected * threads // 64


@pytest.mark.parametrize("threads", [64, 128, 192, 256, 320])
def test_waves_of_small_workgroups_share_all_simds(threads: int) -> None:
    found = profile(STORING, [np.zeros(threads, np.uint32)], (99,), (threads,), full=True)
    on: dict[int, set[int]] = {}
    for event in found.timing.events:
        if event.unit == "valu":
            on.setdefault(event.simd, set()).add(event.wave)
    counts = [len(waves) for waves in on.values()]
    assert len(counts) == 4
    assert max(counts) - min(counts) <= 1
    assert max(counts) == found.occupancy.waves_per_simd


def test_a_workgroup_that_fits_on_no_compute_unit_is_refused() -> None:
    text = STORING.replace("next_free_vgpr 32", "next_free_vgpr 256")
    with pytest.raises(ValueError, match=r"1024 threads are 4 waves for each SIMD, whose 512"):
        profile(text, [np.zeros(1024, np.uint32)], (1,), (1024,))


def test_the_table_says_what_limits(looping: Profile) -> None:
    table = profile_table(looping)
    for shown in ("occupancy ", "main loop", "matrix cycles", "of conflicts", "limit       LDS is"):
        assert shown in table


def test_the_json_has_all_of_it(looping: Profile) -> None:
    found = json.loads(json.dumps(profile_json(looping)))
    assert found["timing"]["cycles"] == looping.timing.cycles
    assert found["loop"]["instructions"]["matrix"] > 0
    assert found["limits"] == list(looping.limits)


def test_the_timeline_is_one_that_perfetto_opens(looping: Profile) -> None:
    """The trace event format: names of tracks, then complete events that do not overlap."""
    rows = json.loads(timeline_json(looping))["traceEvents"]
    assert {row["ph"] for row in rows} == {"M", "X"}
    tracks = {row["args"]["name"] for row in rows if row["ph"] == "M"}
    assert {"units", "waves", "SIMD 0 matrix", "lds", "vmem", "wave 0"} <= tracks
    events = [row for row in rows if row["ph"] == "X"]
    assert all(row["dur"] > 0 and row["ts"] >= 0 for row in events)
    by_track: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in events:
        by_track.setdefault((row["pid"], row["tid"]), []).append((row["ts"], row["dur"]))
    for slices in by_track.values():
        slices.sort()
        for (start, length), (following, _) in pairwise(slices):
            assert start + length <= following


LOOPS = """
	s_mov_b32 s6, 0
.LBB0_1:
	s_mov_b32 s7, 0
.LBB0_2:
	v_add_u32_e32 v1, v1, v0
	s_add_i32 s7, s7, 1
	s_cmp_lt_u32 s7, 9
	s_cbranch_scc1 .LBB0_2
	s_add_i32 s6, s6, 1
	s_cmp_lt_u32 s6, 5
	s_cbranch_scc1 .LBB0_1"""


def test_the_loop_with_most_of_the_work_is_the_main_one() -> None:
    program = parse_assembly(kernel(LOOPS))
    names = [i.name for i in program.instructions]
    executed = [1, 5, *[45] * 4, *[5] * 3, 1]
    whole = main_loop(program, executed)
    assert whole == range(1, 9)  # without matrix instructions, the one with more to execute
    assert names[whole[-1]] == "s_cbranch_scc1"
    assert main_loop(program, [0] * len(names)) is None


def test_of_nested_loops_with_the_same_matrix_work_the_innermost_is_the_main_one() -> None:
    multiplying = LOOPS.replace(
        "v_add_u32_e32 v1, v1, v0", "v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]"
    )
    executed = [1, 5, *[45] * 4, *[5] * 3, 1]
    assert main_loop(parse_assembly(kernel(multiplying)), executed) == range(2, 6)


def test_a_kernel_without_the_lds_waits_for_scalar_loads() -> None:
    """`lgkmcnt` counts both: where nothing is read from the LDS, nobody waits for it."""
    text = kernel(
        """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v0, s[4:5]"""
    )
    found = profile(text, [np.zeros(64, np.uint32)], (1,), (64,))
    assert found.timing.stalls["scalar loads"] > 0
    assert "LDS" not in found.timing.stalls


@pytest.mark.parametrize(
    ("access", "bytes_of_lines"),
    [
        ("scratch_store_dword off, v0, off", 2 * 128),
        ("scratch_store_dwordx4 off, v[0:3], off offset:8", 4 * 2 * 128),
        ("scratch_store_byte off, v0, off", 2 * 128),
        ("scratch_load_dword v1, v8, off", 64 * 128),
    ],
)
def test_words_of_scratch_memory_lie_side_by_side(access: str, bytes_of_lines: int) -> None:
    """Those of 64 lanes are two cache lines, unless each lane takes another word of its own."""
    code = f"""
	v_lshlrev_b32_e32 v8, 2, v0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 0
	{access}
	s_waitcnt vmcnt(0)
"""
    segment = ".amdhsa_group_segment_fixed_size"
    text = kernel(code).replace(segment, f".amdhsa_private_segment_fixed_size 256\n\t\t{segment}")
    found = profile(text, [np.zeros(64, np.uint32)], (1,), (64,))
    assert found.whole.line_bytes == bytes_of_lines
