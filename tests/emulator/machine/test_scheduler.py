"""Waves that wait in loops for others: right in any order, and reported where it cannot end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.error import Fault
from mfmadsl.error import ArgumentError
from tests.emulator.machine import waiting
from tests.emulator.waves import kernel

Words = npt.NDArray[np.uint32]

MANY = 600
"""Workgroups of a wave: twice as many as start at once."""


def words(count: int) -> Words:
    return np.zeros(count, np.uint32)


def run(text: str, count: int, groups: int, threads: int = 64, **options: Any) -> Words:
    memory = words(count)
    emulate(text, [memory], (groups,), (threads,), **options)
    return memory


def fault(text: str, count: int, groups: int, threads: int = 64, **options: Any) -> Fault:
    with pytest.raises(EmulationError) as raised:
        run(text, count, groups, threads, **options)
    return raised.value.fault


def copies(producer: int, groups: int) -> Words:
    """What `flag` leaves: each workgroup's number plus 7, but for the producer's."""
    numbers = np.arange(groups) + 7
    numbers[producer] = 0
    return np.concatenate([[1, 7], numbers]).astype(np.uint32)


def sums(groups: int) -> Words:
    return np.cumsum(np.arange(groups) + 1).astype(np.uint32)


def met(groups: int) -> Words:
    own = np.arange(groups)
    return np.concatenate([[groups], own, np.roll(own, -1)]).astype(np.uint32)


def fixed_up(pairs: int) -> Words:
    """Behind a page of flags, 16 times the lane plus the pair's number."""
    flags = (np.arange(64) < pairs).astype(np.uint32)
    partial = np.arange(pairs)[:, None] + 16 * np.arange(64)
    return np.concatenate([flags, partial.reshape(-1)]).astype(np.uint32)


def behind(groups: int) -> Words:
    return np.concatenate([[1], np.repeat(np.arange(groups) + 1, 128)]).astype(np.uint32)


FORMS: dict[str, tuple[str, int, int, Words]] = {
    "a flag, its producer first": (waiting.flag(0, consumer_first=False), 3, 64, copies(0, 3)),
    "a flag, its consumers first": (waiting.flag(2, consumer_first=True), 3, 64, copies(2, 3)),
    "consumers that sleep": (waiting.flag(2, True, sleep=True), 3, 64, copies(2, 3)),
    "a consumer that counts": (waiting.counting(2), 3, 64, copies(2, 3)),
    "a consumer that forgets": (waiting.forgetting(2), 3, 64, copies(2, 3)),
    "a sum passed on": (waiting.chain(20, backward=False), 20, 64, sums(20)),
    "a sum passed back": (waiting.chain(20, backward=True), 20, 64, sums(20)),
    "a flag on behalf of another": (waiting.relay(), 3, 64, np.array([1, 1, 7, 7], np.uint32)),
    "a flag for another wave": (waiting.for_others(), 2, 128, np.array([1, 0, 7, 7], np.uint32)),
    "Stream-K, who waits first": (waiting.fix_up(waiting_first=True), 6, 64, fixed_up(3)),
    "Stream-K, who waits last": (waiting.fix_up(waiting_first=False), 6, 64, fixed_up(3)),
    "a barrier over the grid": (waiting.grid_barrier(9), 9, 64, met(9)),
    "tickets": (waiting.ticket_lock(), 12, 64, np.array([12, 12, 24], np.uint32)),
    "a mutex": (waiting.mutex(), 12, 64, np.array([0, 0, 24], np.uint32)),
    "a queue of tiles": (
        waiting.queue(100), 7, 64, np.array([107, *range(100)], np.uint32)
    ),
    "the LDS, its reader first": (waiting.in_lds(True), 1, 128, 3 * np.arange(64, dtype=np.uint32)),
    "the LDS, its writer first": (
        waiting.in_lds(False), 1, 128, 3 * np.arange(64, dtype=np.uint32)
    ),
    "a counter in the LDS": (
        waiting.counter_in_lds(3),
        1,
        192,
        np.roll(3 * np.arange(192, dtype=np.uint32), -64),
    ),
    "waves at a barrier": (waiting.behind_a_barrier(2), 3, 128, behind(3)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_who_waits_in_a_loop_gets_on(form: str) -> None:
    text, groups, threads, expected = FORMS[form]
    assert (run(text, len(expected), groups, threads) == expected).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_order_of_waves_does_not_matter(form: str) -> None:
    text, groups, threads, expected = FORMS[form]
    for seed in range(10):
        found = run(text, len(expected), groups, threads, order="random", seed=seed)
        assert (found == expected).all(), seed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (waiting.flag(MANY - 1, consumer_first=True), copies(MANY - 1, MANY)),
        (waiting.chain(300, backward=True), sums(300)),
        (waiting.grid_barrier(MANY), met(MANY)),
    ],
    ids=["a flag", "a sum passed back", "a barrier over the grid"],
)
@pytest.mark.parametrize("order", ["lockstep", "random"])
def test_who_is_waited_for_may_start_later(text: str, expected: Words, order: str) -> None:
    groups = MANY if len(expected) > MANY else len(expected)
    assert (run(text, len(expected), groups, order=order) == expected).all()


def test_waves_that_wait_execute_little_meanwhile() -> None:
    """The consumers look a few times, however long the producer takes."""
    work = "".join("	s_nop 0\n" for _ in range(2000))
    text = waiting.flag(2, True).replace(".LSECOND:\n", f".LSECOND:\n{work}")
    memory = words(5)
    counts = emulate(text, [memory], (3,), (64,)).instructions
    assert (memory == copies(2, 3)).all()
    assert counts["global_load_dword"] < 200


@pytest.mark.parametrize("order", ["lockstep", "random"])
def test_a_flag_that_nobody_sets(order: str) -> None:
    text = waiting.flag(2, consumer_first=True, is_set=False)
    found = fault(text, 5, 3, order=order)
    assert found.kind == "deadlock"
    assert (found.workgroup, found.wave, found.lane) == ((0, 0, 0), 0, 0)
    assert found.instruction == "global_load_dword v3, v1, s[4:5] sc1"
    assert found.line is not None
    assert text.splitlines()[found.line - 1].strip() == found.instruction
    assert found.message == (
        "waits in a loop for offset 0 of `p0`, which has 20 bytes: it is 0x0, and no wave is left "
        f"that could change it; there wait 2 waves in line {found.line} for offset 0 of `p0`, "
        "which has 20 bytes"
    )


def test_a_flag_in_the_lds_that_nobody_sets() -> None:
    found = fault(waiting.in_lds(True, is_set=False), 64, 1, 128)
    assert (found.kind, found.wave, found.workgroup) == ("deadlock", 1, (0, 0, 0))
    assert found.message.startswith("waits in a loop for address 0x100 of LDS: it is 0x0, and no")


def test_workgroups_that_wait_for_one_another() -> None:
    found = fault(waiting.two_locks(), 2, 2)
    assert found.kind == "deadlock"
    assert "for offset 4 of `p0`" in found.message.partition(";")[0]
    others = found.message.partition(";")[2]
    assert "1 wave in line" in others
    assert "for offset 0 of `p0`" in others


def test_a_lock_that_is_never_released() -> None:
    found = fault(waiting.mutex(unlocks=False), 3, 2)
    assert found.kind == "deadlock"
    assert found.instruction == "global_atomic_cmpswap v2, v1, v[8:9], s[4:5] sc0"
    assert "offset 0 of `p0`, which has 12 bytes: it is 0x1" in found.message


def test_lanes_of_a_wave_that_take_a_lock_in_turns() -> None:
    """The one that has it waits for the others to leave the loop, as they do on the chip."""
    found = fault(waiting.mutex(lanes=2), 3, 1)
    assert (found.kind, found.wave, found.lane) == ("deadlock", 0, 1)
    assert run(waiting.mutex(lanes=1), 3, 1)[2] == 2


def test_waves_at_a_barrier_that_wait_for_one_in_a_loop() -> None:
    found = fault(waiting.behind_a_barrier(5), 1 + 3 * 128, 3, 128)
    assert found.kind == "deadlock"
    assert "3 waves at the barrier in line" in found.message


def test_workgroups_that_the_chip_has_no_room_for() -> None:
    """An MI100 holds one workgroup with so much LDS on each of its 120 compute units."""
    text = waiting.grid_barrier(150).replace("gfx942", "gfx908").replace("buffer_inv sc1", "")
    text = text.replace("buffer_wbl2 sc1", "").replace(" sc1", " glc").replace(" sc0", " glc")
    text = text.replace("global_atomic_add v1, v8, s[4:5] glc", "global_atomic_add v1, v8, s[4:5]")
    text = text.replace(".amdhsa_accum_offset 32", "")
    expected = met(150)
    assert (run(text, len(expected), 150, lds_bytes=1024) == expected).all()
    four = text.replace(
        "s_mov_b64 exec, 1",
        "s_mov_b64 exec, 1\n	v_cmp_gt_u32_e32 vcc, 64, v0\n	s_cbranch_vccz .LEND",
    ).replace("	s_endpgm", ".LEND:\n	s_endpgm")
    found = fault(four, len(expected), 150, 256, lds_bytes=65536)
    assert found.kind == "deadlock"
    assert found.message.endswith("and 30 workgroups for room on the chip")


def test_a_loop_that_looks_at_nothing() -> None:
    found = fault(kernel(".LHERE:\n	s_branch .LHERE"), 1, 1)
    assert (found.kind, found.instruction) == ("deadlock", "s_branch .LHERE")
    assert found.message == (
        "goes round in a loop for ever, and looks at nothing that could end it"
    )


@pytest.mark.parametrize("times", [63, 64, 65, 1000])
def test_a_long_loop_that_gets_on_is_left_alone(times: int) -> None:
    """It adds to a word, looks at it, and forgets what it saw: registers alone do not tell."""
    text = kernel(f"""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v8, 1
	s_mov_b64 exec, 1
	s_movk_i32 s12, {times}
	s_waitcnt lgkmcnt(0)
.LNEXT:
	global_atomic_add v1, v8, s[4:5]
	global_load_dword v2, v1, s[4:5]
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s9, v2
	s_cmp_eq_u32 s9, s12
	s_cselect_b64 vcc, -1, 0
	s_mov_b32 s9, 0
	v_mov_b32_e32 v2, 0
	s_cmp_eq_u32 s9, 1
	s_cbranch_vccz .LNEXT""")
    assert run(text, 1, 1) == times


def latest(**options: Any) -> int:
    """Which of 8 workgroups, that all write their number to word 0, is the last."""
    text = kernel("""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[4:5]""")
    return int(run(text, 1, 8, **options)[0])


def test_a_seed_decides_on_the_order() -> None:
    found = [latest(order="random", seed=seed) for seed in range(20)]
    assert len(set(found)) > 3
    assert found == [latest(order="random", seed=seed) for seed in range(20)]
    assert latest() == latest(order="lockstep", seed=5) == 7


def test_waves_may_stop_anywhere() -> None:
    """One workgroup counts a word to 2, and another one reads it at some time."""
    text = kernel("""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, 1
	v_mov_b32_e32 v3, 2
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc1 .LREADS
	global_store_dword v1, v2, s[4:5]
	global_store_dword v1, v3, s[4:5]
	s_endpgm
.LREADS:
	global_load_dword v4, v1, s[4:5]
	s_waitcnt vmcnt(0)
	global_store_dword v1, v4, s[4:5] offset:4""")
    found = {int(run(text, 2, 2, order="random", seed=seed)[1]) for seed in range(60)}
    assert found == {0, 1, 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "chaos"}, "order: is one of lockstep, random, not 'chaos'"),
        ({"order": None}, "order: is one of lockstep, random, not None"),
        ({"seed": -1}, "seed: is a number from 0 on, not -1"),
        ({"seed": 0.5}, "seed: is an integer, not 0.5"),
    ],
)
def test_an_order_that_there_is_not_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        run(kernel(""), 1, 1, **options)
