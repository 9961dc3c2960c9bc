"""Threads that share the waves of a launch: the same bits, counts and faults as with one thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.native import stretches, team, threads_wanted
from mfmadsl.emulator.native.library import library
from mfmadsl.emulator.native.state import State
from mfmadsl.emulator.native.team import Team, team_of
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.error import ArgumentError
from tests.emulator.native.both import KEEPING, copied, known, random_waves
from tests.emulator.native.test_stretch import ADDRESSES, LOOP, always_hot
from tests.emulator.waves import kernel

THREADS = 3
GROUPS, BLOCK = 50, 192  # three waves a workgroup: blocks of waves are not all alike
LANES = GROUPS * BLOCK

# Each word is read by the next workgroup's waves before anybody has written: the order shows.
PLACES = f"""\
{ADDRESSES.replace("s_lshl_b32 s6, s2, 8", "s_mul_i32 s6, s2, 0x300")}
	v_lshlrev_b32_e32 v7, 2, v0
"""
EXCHANGE = f"""\
{PLACES}
	global_load_dword v2, v1, s[4:5]
	s_movk_i32 s7, 9
	s_waitcnt vmcnt(0)
loop:
	ds_write_b32 v7, v2
	v_mad_u32_u24 v2, v2, 3, s2
	s_waitcnt lgkmcnt(0)
	ds_read_b32 v3, v7 offset:64
	v_xor_b32_e32 v2, v2, v0
	ds_read2_b32 v[4:5], v7 offset1:32
	s_waitcnt lgkmcnt(0)
	v_add3_u32 v2, v3, v2, v4
	global_load_dword v6, v1, s[4:5] offset:512
	v_add_u32_e32 v2, v2, v5
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v2, v2, v6
	global_store_dword v1, v2, s[4:5]
	global_store_dword v1, v2, s[4:5] offset:256
	v_mov_b32_e32 v8, v7
	ds_read_b32 v8, v8 offset:4
	s_waitcnt lgkmcnt(0)
	v_add_u32_e32 v2, v2, v8
	s_add_i32 s7, s7, -1
	s_cmp_lg_u32 s7, 0
	s_cbranch_scc1 loop
	global_store_dword v1, v2, s[4:5]
"""


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has so many threads run what follows, all of it as native code that can be."""
    always_hot(monkeypatch)
    monkeypatch.setattr(stretches, "_SHARED", 0)
    return lambda threads: monkeypatch.setenv("MFMADSL_THREADS", str(threads))


def words() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(0, 1 << 32, LANES + 256, np.uint32)


def run(code: str, **more: Any) -> tuple[Any, bytes]:
    x = words()
    done = emulate(kernel(code), [x], grid=(GROUPS,), block=(BLOCK,), lds_bytes=1024, **more)
    return done, x.tobytes()


@pytest.mark.parametrize("order", ["lockstep", "random"])
@pytest.mark.parametrize("code", [LOOP, EXCHANGE], ids=["loop", "exchange"])
def test_the_same_bits(code: str, order: str, shared: Callable[[int], None]) -> None:
    found = []
    for threads in (1, THREADS):
        shared(threads)
        found.append(run(code, order=order))
    assert found[0] == found[1]


def test_helpers_help(shared: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "_RESTS", 0)  # try again and again, whatever else runs here
    shared(1)
    expected = run(EXCHANGE)
    shared(THREADS)
    before = team_of(THREADS - 1).helped
    for _ in range(1000):  # the machine may have no time for them at first
        assert run(EXCHANGE) == expected
        if team_of(THREADS - 1).helped > before:
            return
    pytest.fail("no helper has executed anything")


@pytest.mark.parametrize("code", [
    "global_load_dword v2, v1, s[4:5] offset:1028",  # only the last ones are outside
    "v_add_u32_e32 v4, 0x100, v7\n\tds_read_b32 v2, v4 offset:4",
    "v_add_u32_e32 v4, 0x100, v7\n\tds_write_b32 v4, v1 offset:4",
    "v_mov_b32_e32 v4, 1\n\tv_add_u32_e32 v4, 3, v4\n"
    "\tglobal_store_dword v1, v4, s[4:5] offset:1028",
])  # fmt: skip
def test_faults(code: str, shared: Callable[[int], None]) -> None:
    faults = []
    for threads in (1, THREADS):
        shared(threads)
        with pytest.raises(EmulationError) as caught:
            run(f"{PLACES}\t{code}\n\tv_mov_b32_e32 v5, 1")
        faults.append(caught.value.fault)
    assert faults[0] == faults[1]
    assert faults[0].kind == "out-of-bounds"


def test_findings(shared: Callable[[int], None]) -> None:
    found = []
    for threads in (1, THREADS):
        shared(threads)
        x = words()
        done = sanitize(
            kernel(EXCHANGE.replace("s7, 9", "s7, 2")),
            [x],
            grid=(GROUPS,),
            block=(BLOCK,),
            lds_bytes=1024,
            keep_going=True,
        )
        found.append((done.faults, x.tobytes()))
    assert found[0] == found[1]
    assert {fault.kind for fault in found[0][0]} >= {"race"}


@pytest.mark.parametrize(("text", "is_shared"), [
    ("global_load_dword v2, v1, s[4:5]", True),
    ("global_load_dword v1, v1, s[4:5]", False),  # if it is refused, the address is gone
    ("global_load_dwordx2 v[2:3], v[2:3], off", False),
    ("global_store_dword v1, v2, s[4:5]", False),  # workgroups may store to one place
    ("buffer_load_dword v2, v1, s[4:7], 0 offen", True),
    ("buffer_load_dword v1, v1, s[4:7], 0 offen", False),
    ("buffer_store_dword v2, v1, s[4:7], 0 offen", False),
    ("ds_read_b32 v2, v1", True),
    ("ds_read_b64 v[2:3], v3", False),
    ("ds_write_b32 v1, v2", True),
    ("s_load_dword s4, s[4:5], 0x0", False),
])  # fmt: skip
def test_which_accesses_threads_share(text: str, is_shared: bool) -> None:
    found = known(text, KEEPING)
    assert found is not None
    assert found.step.form.splits == is_shared
    assert not found.step.form.is_on_registers


def test_blocks_of_waves_end_where_workgroups_do() -> None:
    one = copied(random_waves(1, KEEPING.mode))
    for per_group, expected in ((3, [0, 18, 33, 48, 50]), (20, [0, 20, 40, 50]), (50, [0, 50])):
        waves = replace(one, scc=np.zeros(50, np.bool_), workgroup=np.arange(50) // per_group)
        assert State(waves).blocks.tolist() == expected
    mixed = replace(one, scc=np.zeros(3, np.bool_), workgroup=np.array([0, 1, 0]))
    assert State(mixed).blocks.tolist() == []


def test_one_launch_beside_another(shared: Callable[[int], None]) -> None:
    shared(THREADS)
    expected = run(EXCHANGE)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(run(EXCHANGE))) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [expected] * 3


def test_a_forked_process_has_helpers_of_its_own(shared: Callable[[int], None]) -> None:
    shared(THREADS)
    expected = run(EXCHANGE)
    child = os.fork()
    if not child:
        os._exit(int(run(EXCHANGE) != expected))
    assert os.waitpid(child, 0)[1] == 0
    assert run(EXCHANGE) == expected


def test_a_team_ends() -> None:
    some = Team(2, library())
    some.end()
    assert some.has_ended
    assert some.helped == 0


@pytest.mark.parametrize("told", ["0", "-1", "two", "", "1.5"])
def test_a_wish_that_is_none_is_refused(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MFMADSL_THREADS", told)
    with pytest.raises(ArgumentError, match="MFMADSL_THREADS: is a number from 1 on, not"):
        threads_wanted()


@pytest.mark.parametrize(("told", "count"), [(None, 1), ("1", 1), ("3", 3), ("300", 8)])
def test_how_many_threads_there_are(
    told: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MFMADSL_THREADS", raising=False)
    if told is not None:
        monkeypatch.setenv("MFMADSL_THREADS", told)
    assert threads_wanted() == count
