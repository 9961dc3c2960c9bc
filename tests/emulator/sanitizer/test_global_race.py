"""Waves that meet in global memory: what orders them is found to do so, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl.emulator.error import EmulationError, Fault
from mfmadsl.emulator.sanitizer import sanitize
from tests.emulator.machine import waiting
from tests.emulator.machine.test_scheduler import FORMS
from tests.emulator.sanitizer.message import ADD, LOAD, OR, STORE, passing_on
from tests.emulator.waves import kernel

CHIPS = ("gfx908", "gfx90a", "gfx942", "gfx950")


def faults(
    text: str, groups: int, threads: int = 64, count: int = 2048, **options: Any
) -> list[Fault]:
    memory = np.zeros(count, np.uint32)
    found = sanitize(text, [memory], (groups,), (threads,), keep_going=True, **options)
    return list(found.faults)


def races(text: str, groups: int, threads: int = 64, **options: Any) -> list[str]:
    """The messages of races; other faults there must not be."""
    found = faults(text, groups, threads, **options)
    assert {fault.kind for fault in found} <= {"race"}, found
    return [fault.message for fault in found]


@pytest.mark.parametrize("form", FORMS)
def test_who_waits_for_others_is_not_accused(form: str) -> None:
    text, groups, threads, _ = FORMS[form]
    assert races(text, groups, threads) == []
    for seed in range(3):
        assert races(text, groups, threads, order="random", seed=seed) == [], seed


FLAG = waiting.flag(2, consumer_first=True)
GRID = waiting.grid_barrier(9)
TICKETS = waiting.ticket_lock()
WRITES_BACK = "	buffer_wbl2 sc1\n"
WAITS = "	s_waitcnt vmcnt(0)\n"
EMPTIES = "	buffer_inv sc1\n"
EMPTIED_EARLY = FLAG.replace(EMPTIES, "").replace(
    f"sc1\n{WAITS}	v_readfirstlane", f"sc1\n{EMPTIES}{WAITS}	v_readfirstlane"
)
assert EMPTIES in EMPTIED_EARLY


@pytest.mark.parametrize(
    ("text", "groups", "missing"),
    [
        (FLAG.replace(WRITES_BACK, ""), 3, "there it needs `buffer_wbl2 sc1` and a wait before"),
        (
            FLAG.replace(WRITES_BACK + WAITS, WRITES_BACK),
            3,
            "it needs `s_waitcnt vmcnt(0)` between `buffer_wbl2 sc1` and the flag",
        ),
        (FLAG.replace(EMPTIES, ""), 3, "it needs `buffer_inv sc1` once the flag is loaded"),
        (FLAG.replace("buffer_inv sc1", "buffer_inv sc0"), 3, "it needs `buffer_inv sc1`"),
        (EMPTIED_EARLY, 3, "it needs `buffer_inv sc1` once the flag is loaded"),
        (FLAG.replace("v8, s[4:5] sc1", "v8, s[4:5]"), 3, "reads offset 0 of `p0`"),
        (FLAG.replace("v1, s[4:5] sc1", "v1, s[4:5]"), 3, "which wave 0 of workgroup (2, 0, 0) w"),
        (GRID.replace(WRITES_BACK, ""), 9, "there it needs `buffer_wbl2 sc1`"),
        (GRID.replace(EMPTIES, ""), 9, "it needs `buffer_inv sc1`"),
        (TICKETS.replace(WRITES_BACK, ""), 3, "there it needs `buffer_wbl2 sc1`"),
        (waiting.relay().replace(WRITES_BACK, "", 1), 3, "workgroup (0, 0, 0) wrote before a flag"),
        (waiting.mutex().replace(EMPTIES, ""), 3, "it needs `buffer_inv sc1`"),
        (waiting.fix_up(True).replace(WRITES_BACK, ""), 6, "there it needs `buffer_wbl2 sc1`"),
        (waiting.chain(5, False).replace("v4, s[4:5] sc1", "v4, s[4:5]"), 5, "offset 0 of `p0`"),
    ],
)
def test_what_a_flag_lacks_is_told(text: str, groups: int, missing: str) -> None:
    usual: dict[str, Any] = {}
    for options in (usual, {"order": "random", "seed": 1}, {"order": "random", "seed": 2}):
        found = races(text, groups, **options)
        assert found, options
        assert any(missing in each for each in found), found


def test_what_another_wave_wrote_is_written_back_once_it_is_known() -> None:
    """By the wave that sets the flag, behind the barrier; ahead of it by each wave for itself."""
    assert races(waiting.for_others(), 2, 128) == []
    assert races(waiting.for_others(early=True), 2, 128) == []
    own = waiting.for_others(early=True).replace(
        "	global_store_dword v1, v2, s[4:5] offset:8\n.LWRITTEN:\n",
        "	global_store_dword v1, v2, s[4:5] offset:8\n	s_branch .LHERE\n.LWRITTEN:\n",
    )
    (found,) = races(own.replace("	s_barrier", ".LHERE:\n	s_barrier", 1), 2, 128)
    assert "wave 1 of workgroup (1, 0, 0) wrote before a flag: there it needs `buffer_w" in found


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("send", "release"), [(STORE, "release"), (ADD, "acq_rel")])
@pytest.mark.parametrize(("look", "acquire"), [(LOAD, "acquire"), (OR, "acq_rel")])
def test_what_llvm_makes_of_release_and_acquire_orders(
    arch: str, send: str, release: str, look: str, acquire: str
) -> None:
    text = passing_on(arch, send.format(order=release), look.format(order=acquire))
    assert races(text, 2) == []


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("lacks", ["release", "acquire"])
def test_what_llvm_makes_of_less_does_not_order(arch: str, lacks: str) -> None:
    orders = ["monotonic" if lacks == each else each for each in ("release", "acquire")]
    text = passing_on(arch, STORE.format(order=orders[0]), LOAD.format(order=orders[1]))
    (found,) = races(text, 2)
    assert found.startswith("reads offset 0 of `data`, which has 8192 bytes, which wave 0 of")


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_a_flag_that_is_set_before_the_store_is_waited_for(arch: str) -> None:
    text = passing_on(arch, STORE.format(order="release"), LOAD.format(order="acquire"))
    lines = text.splitlines()
    store = next(i for i, line in enumerate(lines) if "global_store_dword " in line)
    waits = next(i for i, line in enumerate(lines) if i > store and "vmcnt(0)" in line)
    lines[waits] = lines[waits].replace("vmcnt(0)", "vmcnt(9)")
    (found,) = races("\n".join(lines), 2)
    assert "there it needs `s_waitcnt vmcnt(0)`" in found


def test_a_race_names_both_accesses() -> None:
    (found,) = faults(FLAG.replace(WRITES_BACK, ""), 3)
    assert (found.workgroup, found.wave, found.lane) == ((0, 0, 0), 0, 0)
    assert found.instruction == "global_load_dword v4, v1, s[4:5] offset:4"
    assert found.earlier is not None
    assert found.earlier.instruction == "global_store_dword v1, v2, s[4:5] offset:4"
    assert found.message == (
        "reads offset 4 of `p0`, which has 8192 bytes, which wave 0 of workgroup (2, 0, 0) wrote "
        "before a flag: there it needs `buffer_wbl2 sc1` and a wait before the flag"
    )


def plain(code: str) -> str:
    """A kernel whose lanes have the byte offset of their number in v1, and of the grid in v2."""
    return kernel(f"""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_lshl_b32 s3, s2, 8
	v_lshl_add_u32 v2, v0, 2, s3
	v_add_u32_e32 v3, s2, v0
	v_mov_b32_e32 v4, 1.0
	v_mov_b32_e32 v5, 0
	s_waitcnt lgkmcnt(0)
{code}""")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("	global_store_dword v1, v3, s[4:5]", "writes offset 0 of `p0`"),  # other values
        ("	global_store_dword v1, v4, s[4:5]", None),  # one value
        ("	global_store_dword v2, v3, s[4:5]", None),  # words of their own
        (
            "	global_store_dword v2, v3, s[4:5]\n	global_load_dword v6, v1, s[4:5]",
            "reads off",
        ),
        (
            "	global_load_dword v6, v1, s[4:5]\n	s_nop 0\n	global_store_dword v2, v3, s[4:5]",
            "writes off",
        ),
        ("	global_atomic_add v1, v3, s[4:5]", None),
        (
            "	global_store_dword v2, v3, s[4:5]\n	global_atomic_add v1, v3, s[4:5]",
            "writes off",
        ),
        ("	global_store_dword v1, v3, s[4:5] sc1", None),  # of atomic variables
        ("	global_store_dword v1, v3, s[4:5] sc0", "writes offset 0"),  # not of a workgroup's
        ("	global_store_dword v5, v0, s[4:5] sc1", None),
        ("	global_store_byte v0, v3, s[4:5]", "writes offset 0"),
        (
            "	global_store_short v2, v3, s[4:5]\n	global_load_ushort v6, v2, s[4:5] offset:2",
            None,
        ),
    ],
)
def test_workgroups_that_meet(code: str, message: str | None) -> None:
    found = races(plain(code), 2)
    assert len(found) == (message is not None), found
    assert message is None or message in found[0]
    for seed in range(4):  # who comes first may be the other one
        assert bool(races(plain(code), 2, order="random", seed=seed)) == (message is not None)


@pytest.mark.parametrize(
    ("store", "accused"),
    [("v5, v0, s[4:5]", True), ("v5, v4, s[4:5]", False), ("v5, v0, s[4:5] sc1", False)],
)
def test_lanes_of_one_store_that_meet(store: str, accused: bool) -> None:
    found = races(plain(f"	global_store_dword {store}"), 1)
    assert len(found) == accused
    assert all(each.endswith("where lane 63 writes another value at once") for each in found)


@pytest.mark.parametrize(
    ("code", "accused"),
    [
        ("	global_store_dword v1, v3, s[4:5]", True),
        ("	global_atomic_add v1, v3, s[4:5]\n	global_load_dword v6, v1, s[4:5]", True),
        ("	global_atomic_add v1, v3, s[4:5]\n	global_load_dword v6, v1, s[4:5] glc", False),
        ("	global_store_dword v2, v3, s[4:5]\n	global_load_dword v6, v1, s[4:5]", True),
        ("	global_store_dword v2, v3, s[4:5]\n	global_load_dword v6, v1, s[4:5] glc", False),
        ("	global_store_dword v2, v3, s[4:5]\n	global_atomic_add v1, v3, s[4:5]", False),
    ],
)
@pytest.mark.parametrize("arch", ["gfx908", "gfx90a"])
def test_where_a_device_has_one_l2_a_store_may_be_of_an_atomic_variable(
    arch: str, code: str, accused: bool
) -> None:
    assert bool(races(plain(code).replace("gfx942", arch), 2)) == accused


def test_workgroups_of_different_portions_meet() -> None:
    """The last one reads what the first one, which ended long ago, has written."""
    code = """
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc1 .LWRITES
	s_cmp_eq_u32 s2, 599
	s_cbranch_scc0 .LEND
	global_load_dword v6, v1, s[4:5]
	s_endpgm
.LWRITES:
	global_store_dword v1, v3, s[4:5]
.LEND:"""
    (found,) = races(plain(code), 600)
    assert "which wave 0 of workgroup (0, 0, 0) wrote with nothing between that orders" in found


EXCHANGED = """
	v_xor_b32_e32 v6, 0x100, v1
	global_store_dword v1, v3, s[4:5]
	s_barrier
	global_load_dword v7, v6, s[4:5]
	s_waitcnt vmcnt(0)
	s_barrier
	global_store_dword v1, v7, s[4:5]"""


def test_a_barrier_orders_the_waves_of_a_workgroup() -> None:
    """Without a wait: LLVM emits none where waves share a vector L1 cache."""
    assert races(plain(EXCHANGED), 1, 128) == []
    without_first = EXCHANGED.replace("	s_barrier\n", "", 1)
    assert (
        "reads offset 256 of `p0`, which has 8192 bytes, which wave 1 wrote"
        in (races(plain(without_first), 1, 128)[0])
    )
    last = "	s_waitcnt vmcnt(0)\n	s_barrier"
    without_second = EXCHANGED.replace(last, "	s_waitcnt vmcnt(0)")
    assert (
        "writes offset 0 of `p0`, which has 8192 bytes, which wave 1 read"
        in (races(plain(without_second), 1, 128)[0])
    )


def test_accesses_that_are_not_aligned_share_no_byte() -> None:
    code = """
	global_store_dword v2, v3, s[4:5] offset:2
	global_load_ubyte v6, v5, s[4:5] offset:{}"""
    assert races(plain(code.format(1)), 2) == []
    assert "reads offset 2 of `p0`" in races(plain(code.format(2)), 2)[0]


def test_a_load_straight_to_lds_reads_memory() -> None:
    code = plain("	global_store_dword v2, v3, s[4:5]\n	s_mov_b32 m0, 0\n	s_nop 0\n"
                 "	global_load_lds_dword v1, s[4:5]")  # fmt: skip
    text = code.replace("group_segment_fixed_size 0", "group_segment_fixed_size 256")
    assert "reads offset 0 of `p0`" in races(text, 2)[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [("v3", "writes LDS at 0x0, where wave 1 writes another value at once"), ("v4", None)],
)
def test_waves_that_write_one_place_of_the_lds_by_one_instruction(
    value: str, message: str | None
) -> None:
    code = plain(f"	v_and_b32_e32 v6, 0xfc, v1\n	ds_write_b32 v6, {value}")
    text = code.replace("group_segment_fixed_size 0", "group_segment_fixed_size 256")
    assert races(text, 1, 128) == ([] if message is None else [message])
    for seed in range(4):
        assert bool(races(text, 1, 128, order="random", seed=seed)) == (message is not None)


def test_waves_that_load_straight_to_one_place_of_the_lds() -> None:
    code = (
        "\tv_readfirstlane_b32 s9, v1\n\ts_mov_b32 m0, {}\n\ts_nop 0\n"
        "\tglobal_load_lds_dword v1, s[4:5]"
    )
    for place, found in (("s9", []), ("4", ["writes LDS at 0x4, where wave 1 writes as well"])):
        text = plain(code.format(place)).replace("fixed_size 0", "fixed_size 512")
        assert [each.removesuffix(" at once") for each in races(text, 1, 128)] == found


def test_a_flag_in_the_lds_that_comes_before_its_data() -> None:
    late = waiting.in_lds(consumer_first=True)
    flag = "	ds_write_b32 v1, v8 offset:256\n	s_waitcnt lgkmcnt(0)\n"
    data = "	ds_write_b32 v7, v2\n	s_waitcnt lgkmcnt(0)\n"
    before, _, after = late.rpartition(data + flag)
    found = races(before + flag + data + after, 1, 128)
    assert any("LDS at 0x0, which wave" in each for each in found)


def test_a_loop_that_reads_one_word_of_the_lds_so_many_times_does_not_wait_for_it() -> None:
    text = waiting.in_lds(consumer_first=False)
    assert races(text, 1, 128) == []
    counted = text.replace(
        "	v_readfirstlane_b32 s16, v3\n	s_cmp_eq_u32 s16, 0",
        "	s_add_u32 s17, s17, 1\n	s_cmp_lt_u32 s17, 3",
    )
    assert counted != text
    assert races(counted, 1, 128)


def test_who_waits_for_ever_is_told_who_has_written_last() -> None:
    nobody = waiting.flag(2, consumer_first=True, is_set=False)
    lock = waiting.mutex(unlocks=False)
    in_lds = waiting.in_lds(consumer_first=True, is_set=False)
    for text, groups, threads, who in (
        (nobody, 3, 64, "it is 0x0, which nobody has written, and no wave is left"),
        (lock, 2, 64, "it is 0x1, written by wave 0 of workgroup (0, 0, 0) in line 15, and no"),
        (in_lds, 1, 128, "it is 0x0, written by wave 0 in line 16, and no wave is left"),
    ):
        with pytest.raises(EmulationError) as raised:
            sanitize(text, [np.zeros(2048, np.uint32)], (groups,), (threads,))
        assert raised.value.fault.kind == "deadlock"
        assert who in raised.value.fault.message, raised.value
