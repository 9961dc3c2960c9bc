"""What the checks of native code find of kernels that are native from their first instruction."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.device.overlap import OverlapWatch, StreamWork
from mfmadsl.emulator.native import lines
from mfmadsl.emulator.native.heat import Heat
from mfmadsl.emulator.run import launch_of, run_launch
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.emulator.sanitizer.footprint import WRITE, Spans
from mfmadsl.emulator.sanitizer.sanitize import Sanitizer
from tests.emulator.sanitizer.message import LOAD, STORE, passing_on
from tests.emulator.sanitizer.test_lanes_off import OUT
from tests.emulator.sanitizer.test_lanes_off import found as lanes_off
from tests.emulator.waves import kernel

WAYS = [True, False]


@pytest.fixture(params=WAYS, ids=["native", "interpreted"], autouse=True)
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that can be is native code, or nothing."""
    monkeypatch.setenv("MFMADSL_NATIVE", str(int(request.param)))
    monkeypatch.setattr(lines, "is_considered", lambda visits, waves: True)
    monkeypatch.setattr(Heat, "is_worth", lambda *_: True)


SCALAR_LOADS = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	s_movk_i32 s8, 20
.Lagain:
	s_load_dword s9, s[4:5], 0x10
	s_waitcnt lgkmcnt(0)
	s_sub_u32 s8, s8, 1
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 .Lagain
	v_mov_b32_e32 v2, s9
	global_store_dword v1, v2, s[6:7]"""


def test_scalar_loads_of_what_another_stream_writes() -> None:
    """Each of them, in each launch of the program."""
    launch = launch_of(kernel(SCALAR_LOADS, arguments=2), (1,), (64,), None)
    for _ in range(2):
        work = StreamWork("kernel `other` on stream 1", Spans.of([(0, 1 << 20)], WRITE))
        sanitizer = Sanitizer(launch.program, True, beside=OverlapWatch([work], True))
        arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
        run_launch(launch, arrays, 10_000, sanitizer)
        told = {each.instruction: sanitizer.seen[each.kind, each.line] for each in sanitizer.found}
        assert told["s_load_dword s9, s[4:5], 0x10"] == 20


TO_LDS = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v9, 0
	s_waitcnt lgkmcnt(0)
	s_mov_b32 s12, s4
	s_and_b32 s13, s5, 0xffff
	s_movk_i32 s14, 0x100
	s_mov_b32 s15, 0x27000
	s_mov_b32 m0, 0
	s_nop 4
	buffer_load_dword v1, s[12:15], 0 offen lds
	{between}
	ds_read_b32 v2, v1
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[6:7]"""


@pytest.mark.parametrize(
    ("between", "kinds"),
    [("s_waitcnt vmcnt(0)", []), ("s_nop 0", ["no-wait"]), ("ds_write_b32 v1, v9", ["no-wait"])],
)  # fmt: skip
def test_loads_straight_to_the_lds_of_the_same_wave(between: str, kinds: list[str]) -> None:
    text = kernel(TO_LDS.format(between=between), arguments=2, lds=256)
    arrays = [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)]
    found = sanitize(text, arrays, (1,), (64,), keep_going=True)
    assert [fault.kind for fault in found.faults] == kinds


def test_lanes_that_stay_off() -> None:
    assert len(lanes_off(OUT)) == 1
    assert not lanes_off()


MIXED = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_and_b32_e32 v1, 63, v0
	v_lshlrev_b32_e32 v1, 2, v1
	v_mov_b32_e32 v2, 1
	ds_write_b32 v1, v2
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_add_u32 v1, v2
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_readfirstlane_b32 s8, v0
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 .Lother
	{first}
	s_endpgm
.Lother:
	ds_add_u32 v1, v2"""


@pytest.mark.parametrize(
    ("first", "kinds"), [("ds_add_u32 v1, v2", []), ("ds_write_b32 v1, v2", ["race"])]
)
def test_stores_to_where_atomics_were(first: str, kinds: list[str]) -> None:
    text = kernel(MIXED.format(first=first), lds=256)
    found = sanitize(text, [np.zeros(64, np.uint32)], (1,), (128,), keep_going=True)
    assert [fault.kind for fault in found.faults] == kinds


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("lacks", [None, "release", "acquire"])
def test_flags(arch: str, lacks: str | None) -> None:
    """On gfx90a any store may set a flag, such as that of one lane, which meets no other."""
    send, look = ("monotonic" if lacks == each else each for each in ("release", "acquire"))
    text = passing_on(arch, STORE.format(order=send), LOAD.format(order=look))
    one_lane = "\tv_mov_b32_e32 v0, 1\n\ts_mov_b64 exec, 1\n"
    text = text.replace("\tv_mov_b32_e32 v0, 1\n", one_lane, 1)
    text = text.replace("hidden_hostcall_buffer", "hidden_none")  # or no memory access is native
    assert one_lane in text
    memory = np.zeros(2048, np.uint32)
    found = sanitize(text, [memory], (2,), (64,), keep_going=True)
    assert {fault.kind for fault in found.faults} == ({"race"} if lacks else set())
