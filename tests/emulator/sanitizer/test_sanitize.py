"""Each kind of fault, planted in a kernel that has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.sanitizer import Findings, sanitize
from mfmadsl.error import ArgumentError
from tests.emulator.waves import kernel

# Four waves write their words of LDS, and each then reads those of the next wave.
EXCHANGE = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_add_u32_e32 v2, 64, v0
	v_and_b32_e32 v2, 0xff, v2
	v_lshlrev_b32_e32 v2, 2, v2
	ds_write_b32 v1, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[4:5]"""


def run(code: str, threads: int = 256, groups: int = 1, **options: Any) -> Findings:
    text = kernel(code, lds=1024)
    arguments = [np.zeros(256, np.uint32)]
    return sanitize(text, arguments, (groups,), (threads,), **options)


def fault(code: str, threads: int = 256, **options: Any) -> Fault:
    with pytest.raises(EmulationError) as raised:
        run(code, threads, **options)
    return raised.value.fault


def test_a_correct_kernel_is_not_accused() -> None:
    result = np.zeros(256, np.uint32)
    found = sanitize(kernel(EXCHANGE, lds=1024), [result], (1,), (256,), keep_going=True)
    assert found.faults == ()
    assert (result == (np.arange(256) + 64) % 256).all()


def test_an_access_outside_of_an_argument() -> None:
    found = fault(EXCHANGE.replace("global_store_dword v1, v3, s[4:5]",
                                   "global_store_dword v1, v3, s[4:5] offset:4"))  # fmt: skip
    assert found.kind == "out-of-bounds"
    assert "offset 1024 of `p0`, which has 1024 bytes" in found.message
    assert (found.workgroup, found.wave, found.lane) == ((0, 0, 0), 3, 63)
    assert found.instruction == "global_store_dword v1, v3, s[4:5] offset:4"
    assert found.line is not None


def test_a_register_that_nobody_wrote() -> None:
    found = fault(EXCHANGE.replace("ds_write_b32 v1, v0", "ds_write_b32 v1, v9"))
    assert (found.kind, found.message) == ("uninitialized", "stores v9, which nobody wrote")
    found = fault(
        EXCHANGE.replace("s_load_dwordx2 s[4:5], s[0:1]", "s_load_dwordx2 s[4:5], s[6:7]")
    )
    assert found.message == "reads s6, which nobody wrote"


@pytest.mark.parametrize(
    ("name", "control", "read"),
    [
        ("s_bfe_i64", 0x10_0000, False),  # 16 bits from 0: LLVM's extension of a halfword
        ("s_bfe_u64", 0x20_0000, False),  # all 32 of the low word
        ("s_bfe_i64", 0x21_0000, True),  # one more
        ("s_bfe_u64", 0x01_0020, True),  # the first of the high word
        ("s_bfe_u64", 0x00_0020, False),  # none
    ],
)
def test_of_a_field_only_its_bits_are_read(name: str, control: int, read: bool) -> None:
    code = f"	s_mov_b32 s18, 5\n	{name} s[20:21], s[18:19], {control:#x}"
    if read:
        assert fault(code).message == "reads s19, which nobody wrote"
    else:
        assert run(code).faults == ()


def test_a_register_that_only_some_lanes_wrote() -> None:
    code = EXCHANGE.replace(
        "	ds_write_b32 v1, v0",
        "	s_mov_b64 exec, 0xff\n	v_mov_b32_e32 v9, v0\n	s_mov_b64 exec, -1\n"
        "	ds_write_b32 v1, v9",
    )
    found = fault(code)
    assert (found.kind, found.wave, found.lane) == ("uninitialized", 0, 8)


def test_a_matrix_instruction_reads_lanes_that_are_off() -> None:
    code = "	s_mov_b64 exec, 0xff\n	v_mov_b32_e32 v9, 0\n	s_nop 1\n"
    found = fault(f"{code}	v_mfma_f32_4x4x1_16b_f32 v[12:15], v9, v9, 0", 64)
    assert (found.message, found.lane) == ("reads v9, which nobody wrote", 8)
    assert run(f"{code}	v_add_f32_e32 v12, v9, v9", 64).faults == ()


def test_undefined_bits_may_be_moved_but_not_used() -> None:
    moved = EXCHANGE.replace(
        "	ds_write_b32 v1, v0",
        "	v_mov_b32_e32 v9, v8\n	v_and_b32_e32 v9, 0xffff0000, v9\n"
        "	v_lshrrev_b32_e32 v9, 16, v9\n	v_and_b32_e32 v9, 0, v9\n"
        "	v_or_b32_e32 v9, v9, v0\n	ds_write_b32 v1, v9",
    )
    assert run(moved).faults == ()
    found = fault(moved.replace("v_and_b32_e32 v9, 0, v9", "v_and_b32_e32 v9, 1, v9"))
    assert found.message == "stores v9, which nobody wrote"


@pytest.mark.parametrize(
    ("store", "accused"),
    [("global_store_short", False), ("global_store_short_d16_hi", True),
     ("global_store_byte", False), ("global_store_byte_d16_hi", True)],
)  # fmt: skip
def test_of_a_register_only_the_half_that_is_stored_counts(store: str, accused: bool) -> None:
    """What nobody wrote of v8 is moved to the upper half of v9, zeros below it."""
    code = EXCHANGE.replace(
        "	global_store_dword v1, v3", f"	v_lshlrev_b32_e32 v9, 16, v8\n	{store} v1, v9"
    )
    if accused:
        assert fault(code).message == "stores v9, which nobody wrote"
    else:
        assert run(code).faults == ()


@pytest.mark.parametrize(("load", "left"), [("d16", "d16_hi"), ("d16_hi", "d16")])
def test_a_load_of_half_a_register_leaves_the_other_as_it_was(load: str, left: str) -> None:
    half = f"	global_load_short_{load} v9, v1, s[4:5]\n	s_waitcnt vmcnt(0)\n"
    other = half.replace(f"_{load} ", f"_{left} ")
    stored = "	global_store_dword v1, v9"
    code = EXCHANGE.replace("	global_store_dword v1, v3", half + stored)
    assert fault(code).message == "stores v9, which nobody wrote"
    assert run(code.replace(stored, other + stored)).faults == ()


@pytest.mark.parametrize(("arch", "registers"), [("gfx908", 3), ("gfx90a", 1), ("gfx942", 1)])
@pytest.mark.parametrize("register", range(4))
def test_a_wave_starts_with_the_coordinates_of_its_threads(
    arch: str, registers: int, register: int
) -> None:
    """In v0 to v2 or packed in v0 (LLVM's guide, "Initial Kernel Execution State")."""
    code = f"	s_load_dwordx2 s[4:5], s[0:1], 0x0\n	v_cmp_eq_u32_e32 vcc, 0, v{register}\n"
    text = kernel(code).replace("gfx942", arch)
    if register < registers:
        assert sanitize(text, [np.zeros(64, np.uint32)], (1,), (64,)).faults == ()
    else:
        with pytest.raises(EmulationError, match=f"reads v{register}, which nobody wrote"):
            sanitize(text, [np.zeros(64, np.uint32)], (1,), (64,))


def test_lds_that_nobody_wrote() -> None:
    found = fault(EXCHANGE.replace("	ds_write_b32 v1, v0\n", ""))
    assert found.kind == "uninitialized"
    assert found.message == "reads address 0x100 of LDS, which nobody wrote"


def test_an_atomic_reads_what_nobody_wrote() -> None:
    found = fault(EXCHANGE.replace("ds_write_b32 v1, v0", "ds_add_u32 v1, v0"))
    assert found.kind == "uninitialized"
    assert found.message == "reads address 0x0 of LDS, which nobody wrote"


def test_memory_that_nobody_wrote() -> None:
    load = EXCHANGE.replace(
        "	v_lshlrev_b32_e32 v1, 2, v0",
        "	v_lshlrev_b32_e32 v1, 2, v0\n	s_waitcnt lgkmcnt(0)\n"
        "	global_load_dword v5, v1, s[4:5]\n	s_waitcnt vmcnt(0)",
    )
    assert run(load).faults == ()
    found = fault(load, unwritten=[0])
    assert found.message.startswith("reads offset 0 of `p0`, which has 1024 bytes, which nobody")


@pytest.mark.parametrize("position", [-1, 1])
def test_what_is_unwritten_is_one_of_the_arguments(position: int) -> None:
    with pytest.raises(ArgumentError, match=f"unwritten: there is no argument {position} of 1"):
        run(EXCHANGE, unwritten=[position])


def test_scratch_memory_keeps_what_is_undefined() -> None:
    spilled = EXCHANGE.replace(
        "	ds_write_b32 v1, v0",
        "	scratch_store_dword off, v9, off\n	s_waitcnt vmcnt(0)\n"
        "	scratch_load_dword v8, off, off\n	s_waitcnt vmcnt(0)\n	ds_write_b32 v1, v8",
    )
    text = kernel(spilled, lds=1024).replace(
        ".amdhsa_next_free_vgpr",
        ".amdhsa_private_segment_fixed_size 16\n\t\t.amdhsa_next_free_vgpr",
    )
    with pytest.raises(EmulationError, match=r"ds_write_b32 v1, v8.*stores v8, which nobody wrote"):
        sanitize(text, [np.zeros(256, np.uint32)], (1,), (256,))


def test_waves_that_meet_in_lds_without_a_barrier() -> None:
    found = fault(EXCHANGE.replace("	s_barrier\n", ""))
    assert found.kind == "race"
    assert found.message == "reads LDS at 0x100, which wave 1 wrote with no barrier between"
    assert found.earlier is not None
    assert (found.earlier.instruction, found.earlier.wave) == ("ds_write_b32 v1, v0", 1)
    assert str(found).endswith(f"; before, line {found.earlier.line}: `ds_write_b32 v1, v0`")


def test_a_read_that_another_wave_overwrites() -> None:
    again = EXCHANGE.replace(
        "	global_store_dword", "	ds_write_b32 v1, v3\n	global_store_dword"
    )
    found = fault(again)
    assert (found.kind, found.wave) == ("race", 1)
    assert found.message == "writes LDS at 0x100, which wave 0 read with no barrier between"
    assert found.earlier is not None
    assert (found.earlier.instruction, found.earlier.wave) == ("ds_read_b32 v3, v2", 0)
    barrier = again.replace("	ds_write_b32 v1, v3", "	s_barrier\n	ds_write_b32 v1, v3")
    assert run(barrier).faults == ()


def test_an_access_still_in_flight_when_a_barrier_is_passed() -> None:
    found = fault(EXCHANGE.replace("	s_waitcnt lgkmcnt(0)\n	s_barrier", "	s_barrier"))
    assert found.kind == "no-wait"
    assert "which wave 1 wrote and did not wait for" in found.message
    assert "`s_waitcnt lgkmcnt` before the barrier" in found.message


def test_a_register_used_before_its_load_is_waited_for() -> None:
    found = fault(EXCHANGE.replace("	s_waitcnt lgkmcnt(0)\n	global", "	global"))
    assert found.kind == "in-flight"
    assert found.message == (
        "reads v3, which a load still in flight will write: it needs `s_waitcnt lgkmcnt(0)` before"
    )


def test_a_register_overwritten_before_its_load_is_over() -> None:
    code = EXCHANGE.replace(
        "	s_waitcnt lgkmcnt(0)\n	global",
        "	v_mov_b32_e32 v3, 0\n	s_waitcnt lgkmcnt(0)\n	global",
    )
    assert fault(code).message.startswith("writes v3, which a load still in flight will write")


def test_a_wait_that_leaves_one_too_many_in_flight() -> None:
    two = EXCHANGE.replace("ds_read_b32 v3, v2", "ds_read_b32 v3, v2\n	ds_read_b32 v6, v2")
    assert run(two.replace("lgkmcnt(0)\n	global", "lgkmcnt(1)\n	global")).faults == ()
    found = fault(two.replace("lgkmcnt(0)\n	global", "lgkmcnt(2)\n	global"))
    assert "it needs `s_waitcnt lgkmcnt(1)` before" in found.message


def test_scalar_loads_come_in_any_order() -> None:
    code = EXCHANGE.replace(
        "	s_waitcnt lgkmcnt(0)\n	s_barrier", "	s_waitcnt lgkmcnt(1)\n	s_barrier"
    )
    assert fault(code).kind == "no-wait"


SCALAR = "	s_load_dwordx2 s[6:7], s[0:1], 0x0\n"


def reading(before: str, wait: str) -> str:
    """EXCHANGE with something under way beside its last read of LDS, and a wait for that."""
    return EXCHANGE.replace(
        "	ds_read_b32 v3, v2\n	s_waitcnt lgkmcnt(0)",
        before.replace("READ", "	ds_read_b32 v3, v2") + f"\n	s_waitcnt {wait}",
    )


@pytest.mark.parametrize(
    "beside", [SCALAR + "READ", "READ\n" + SCALAR.rstrip(), "READ\n	flat_load_dword v7, v[8:9]"]
)
def test_beside_what_comes_in_any_order_only_a_wait_for_all_counts(beside: str) -> None:
    """CDNA3 ISA, section 4.4: scalar and flat loads return out of order."""
    code = reading(beside, "lgkmcnt(1)").replace(
        "	ds_write_b32 v1, v0",
        "	s_waitcnt lgkmcnt(0)\n	v_add_u32_e32 v8, s4, v1\n	v_mov_b32_e32 v9, s5\n"
        "	ds_write_b32 v1, v0",
    )
    found = fault(code)
    assert found.message == (
        "reads v3, which a load still in flight will write: it needs `s_waitcnt lgkmcnt(0)` before"
    )
    assert run(code.replace("lgkmcnt(1)", "lgkmcnt(0)")).faults == ()


def test_after_a_wait_for_all_the_lds_is_in_order_again() -> None:
    two = reading(f"{SCALAR}	s_waitcnt lgkmcnt(0)\nREAD\n	ds_read_b32 v6, v2", "lgkmcnt(1)")
    assert run(two).faults == ()


@pytest.mark.parametrize(("scalar", "accused"), [("", False), (SCALAR, True)])
def test_a_counter_that_is_full_says_nothing_where_a_scalar_load_is_under_way(
    scalar: str, accused: bool
) -> None:
    """It counts to 15: of 17 reads in order the first two are over, else nobody knows which."""
    reads = "\n".join(["READ", *(f"	ds_read_b32 v{n}, v2" for n in range(6, 22))])
    code = reading(scalar + reads, "vmcnt(0)")
    if accused:
        assert "reads v3, which a load still in flight will write" in fault(code).message
    else:
        assert run(code).faults == ()


def test_scalar_loads_into_one_register_may_come_in_either_order() -> None:
    code = reading(f"{SCALAR}{SCALAR}READ", "lgkmcnt(0)")
    assert fault(code).message.startswith("writes s6, which a load still in flight will write")
    apart = reading(f"{SCALAR}	s_waitcnt lgkmcnt(0)\n{SCALAR}READ", "lgkmcnt(0)")
    assert run(apart).faults == ()


@pytest.mark.parametrize(("kind", "accused"), [("global_load_dword v5, v1, s[4:5]", False),
                                               ("ds_read_b32 v5, v1", True)])  # fmt: skip
def test_loads_into_one_register_come_in_order_where_they_are_of_one_kind(
    kind: str, accused: bool
) -> None:
    """Those of memory do so whatever scalar loads are under way, which only others wait for."""
    code = EXCHANGE.replace(
        "	ds_write_b32 v1, v0",
        "	s_waitcnt lgkmcnt(0)\n	ds_write_b32 v1, v0\n	s_waitcnt lgkmcnt(0)\n"
        "	global_load_dword v5, v1, s[4:5]\n	s_load_dwordx2 s[6:7], s[0:1], 0x0\n"
        f"	{kind}\n	s_waitcnt vmcnt(0)",
    )
    if accused:
        assert "writes v5, which a load still in flight will write" in fault(code).message
    else:
        assert run(code).faults == ()


def test_a_barrier_that_some_waves_never_reach() -> None:
    code = EXCHANGE.replace(
        "	ds_write_b32 v1, v0",
        "	v_readfirstlane_b32 s6, v0\n	s_cmp_lt_u32 s6, 64\n	s_cbranch_scc1 .LEND\n"
        "	ds_write_b32 v1, v0",
    ) + "\n.LEND:"  # fmt: skip
    found = fault(code)
    assert (found.kind, found.instruction) == ("divergent-barrier", "s_barrier")
    assert found.message == "3 of 4 waves wait here, but 1 have ended"


def test_waves_may_meet_at_different_barriers() -> None:
    code = """
	v_readfirstlane_b32 s6, v0
	s_cmp_lt_u32 s6, 64
	s_cbranch_scc1 .LOTHER
	s_barrier
	s_endpgm
.LOTHER:
	s_barrier"""
    assert run(code).faults == ()


def test_waves_that_part_and_meet_again_keep_their_registers_apart() -> None:
    """The last wave skips ahead, so that the others join it, not it them; half of it is off."""
    code = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_movk_i32 s6, 0xe0
	v_cmp_gt_u32_e32 vcc, s6, v0
	s_and_b64 exec, exec, vcc
	v_mov_b32_e32 v2, 2.0
	v_readfirstlane_b32 s7, v0
	s_cmp_gt_u32 s7, 0xbf
	s_cbranch_scc1 .LMEET
	v_mov_b32_e32 v3, 0
.LMEET:
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[4:5]"""
    result = np.zeros(256, np.float32)
    assert sanitize(kernel(code), [result], (1,), (256,), keep_going=True).faults == ()
    assert (result == 2 * (np.arange(256) < 0xE0)).all()


@pytest.mark.parametrize("width", ["b64", "b96", "b128"])
def test_a_wide_access_may_lie_anywhere(width: str) -> None:
    """amdhsa sets the chips so; only what an access reaches counts."""
    last = {"b64": 5, "b96": 6, "b128": 7}[width]
    read = EXCHANGE.replace("ds_read_b32 v3, v2", f"ds_read_{width} v[4:{last}], v2 offset:2")
    read = read.replace("v1, v3", "v1, v4")
    read = read.replace("v_add_u32_e32 v2, 64, v0", "v_and_b32_e32 v2, 0, v0")
    assert run(read, 256).faults == ()


def test_waves_that_share_a_word_without_a_byte_of_it() -> None:
    """Each wave writes 256 bytes from the second one on, and reads its own."""
    code = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	ds_write_b32 v1, v0 offset:2
	ds_read_b32 v3, v1 offset:2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[4:5]"""
    assert run(code, 128).faults == ()
    found = fault(code.replace("v3, v1 offset:2", "v3, v1 offset:4"), 128)
    assert found.kind == "race"


def test_what_was_read_of_a_word_counts_where_halves_of_it_are_written_later() -> None:
    code = EXCHANGE.replace("0xff", "0x7f").replace(
        "	global_store_dword", "	ds_write_b32 v1, v3 offset:2\n	global_store_dword"
    )
    found = fault(code, 128)
    assert found.kind == "race"
    assert found.message == "writes LDS at 0x102, which wave 0 read with no barrier between"
    barrier = code.replace("	ds_write_b32 v1, v3", "	s_barrier\n	ds_write_b32 v1, v3")
    assert run(barrier, 128).faults == ()


def test_an_atomic_that_is_not_aligned() -> None:
    code = EXCHANGE.replace("ds_read_b32 v3, v2", "ds_add_rtn_u32 v3, v2, v0 offset:2")
    code = code.replace("0xff", "0x7f")
    found = fault(code)
    assert found.kind == "misaligned"
    assert "is not aligned to 4" in found.message


def test_a_loop_without_an_end() -> None:
    code = "\n	s_mov_b32 s8, 0\n.LBB0_1:\n	s_add_u32 s8, s8, 1\n	s_branch .LBB0_1"
    found = fault(code, budget=1000)
    assert (found.kind, found.instruction) == ("budget", "s_branch .LBB0_1")
    assert "executed 1000 instructions without reaching its end" in found.message


def test_straight_to_lds_needs_its_own_wait() -> None:
    code = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_mov_b32 m0, 0
	s_waitcnt lgkmcnt(0)
	global_load_lds_dword v1, s[4:5]
	s_waitcnt vmcnt(0)
	ds_read_b32 v3, v1
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[4:5]"""
    assert run(code, 64).faults == ()
    found = fault(code.replace("	s_waitcnt vmcnt(0)\n", ""), 64)
    assert found.message == "reads LDS at 0x0, which it wrote and did not wait for: it needs " \
        "`s_waitcnt vmcnt`"  # fmt: skip


def test_a_read_must_be_over_before_a_load_straight_to_lds() -> None:
    code = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	ds_write_b32 v1, v0
	ds_read_b32 v3, v1
	s_mov_b32 m0, 0
	s_waitcnt lgkmcnt(0)
	global_load_lds_dword v1, s[4:5]"""
    assert run(code, 64).faults == ()
    late = code.replace("	ds_read_b32 v3, v1\n", "").replace(
        "	global_load", "	ds_read_b32 v3, v1\n	global_load"
    )
    assert fault(late, 64).message.startswith("writes LDS at 0x0, which it read and did not wait")


def test_lanes_may_add_to_one_word_and_then_read_it() -> None:
    code = EXCHANGE.replace(
        "	ds_write_b32 v1, v0",
        "	v_mov_b32_e32 v8, 0\n	ds_write_b32 v1, v8\n	s_waitcnt lgkmcnt(0)\n	s_barrier\n"
        "	ds_add_u32 v8, v0",
    )
    assert run(code).faults == ()
    assert fault(code.replace("	s_barrier\n	ds_add_u32", "	ds_add_u32")).kind == "race"


def test_bytes_of_one_word_are_no_race() -> None:
    code = EXCHANGE.replace("ds_write_b32 v1, v0", "ds_write_b8 v0, v0")
    code = code.replace("ds_read_b32 v3, v2", "ds_read_u8 v3, v0").replace("	s_barrier\n", "")
    assert run(code).faults == ()
    upper = code.replace("ds_write_b8 v0, v0", "ds_write_b8_d16_hi v0, v0")
    assert run(upper).faults == ()


def test_all_faults_are_collected_and_the_emulation_goes_on() -> None:
    code = EXCHANGE.replace("	s_barrier\n", "").replace(
        "ds_write_b32 v1, v0", "ds_write_b32 v1, v9"
    )
    found = run(code, groups=2, keep_going=True)
    assert [f.kind for f in found.faults] == ["uninitialized", "race"]
    assert all(f.line for f in found.faults)
    assert found.counts[0] == 1
    assert found.run.waves == 8


def test_accesses_out_of_bounds_are_left_out_when_it_goes_on() -> None:
    code = EXCHANGE.replace("v3, s[4:5]", "v3, s[4:5] offset:4")
    result = np.zeros(256, np.uint32)
    found = sanitize(kernel(code, lds=1024), [result], (1,), (256,), keep_going=True)
    assert [f.kind for f in found.faults] == ["out-of-bounds"]
    assert (result[1:] == (np.arange(255) + 64) % 256).all()


def test_what_nobody_wrote_is_known_to_later_workgroups_too() -> None:
    """More workgroups than run at once; all but the last write before they read."""
    code = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_lshl_b32 s3, s2, 8
	v_lshl_add_u32 v1, v0, 2, s3
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s2, 599
	s_cbranch_scc1 .LREAD
	global_store_dword v1, v0, s[4:5]
.LREAD:
	s_waitcnt vmcnt(0)
	global_load_dword v3, v1, s[4:5]"""
    memory = np.zeros(600 * 64, np.uint32)
    assert sanitize(kernel(code), [memory], (600,), (64,)).faults == ()
    assert sanitize(kernel(code), [memory], (599,), (64,), unwritten=[0]).faults == ()
    with pytest.raises(EmulationError, match="which nobody wrote") as found:
        sanitize(kernel(code), [memory], (600,), (64,), unwritten=[0])
    assert found.value.fault.workgroup == (599, 0, 0)


def test_atomics_of_several_waves_are_no_race() -> None:
    twice = "	ds_add_u32 v9, v0\n	s_waitcnt lgkmcnt(0)\n" * 2
    text = kernel(f"	v_mov_b32_e32 v9, 0\n	ds_write_b32 v9, v9\n	s_waitcnt lgkmcnt(0)\n"
                  f"	s_barrier\n{twice}", lds=1024)  # fmt: skip
    found = sanitize(text, [np.zeros(256, np.uint32)], (1,), (256,), keep_going=True)
    assert [fault.kind for fault in found.faults] == []
    plain = text.replace("	s_barrier\n", "	s_barrier\n	ds_read_b32 v3, v9\n", 1)
    found = sanitize(plain, [np.zeros(256, np.uint32)], (1,), (256,), keep_going=True)
    assert {fault.kind for fault in found.faults} == {"race"}


def test_only_the_first_of_many_names_what_it_collides_with() -> None:
    """To look for it each time made a loop with a race slow."""
    race = EXCHANGE.replace("	s_barrier\n", "")
    loop = (
        "	s_mov_b32 s6, 3\n.L9:\n	ds_read_b32 v3, v2\n	s_sub_u32 s6, s6, 1\n"
        "	s_cmp_lg_u32 s6, 0\n	s_cbranch_scc1 .L9"
    )
    text = kernel(race.replace("	ds_read_b32 v3, v2", loop), lds=1024)
    found = sanitize(text, [np.zeros(256, np.uint32)], (1,), (256,), keep_going=True)
    races = [f for f in found.faults if f.kind == "race"]
    assert len(races) == 1
    assert races[0].earlier is not None
    assert found.counts[found.faults.index(races[0])] > 1


MASKS = """
	v_cmp_gt_u32_e32 vcc, 8, v0
	s_and_saveexec_b64 s[8:9], vcc
	s_or_b64 s[10:11], s[10:11], exec
	s_andn2_b64 s[12:13], exec, s[10:11]
	{use}"""


def test_lanes_that_are_off_may_have_masks_that_nobody_wrote() -> None:
    """As LLVM writes loops at -O0."""
    assert run(MASKS.format(use="s_cmp_eq_u64 s[12:13], 0")).faults == ()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("s_cmp_eq_u64 s[10:11], 0", "reads s10, which nobody wrote"),
        ("s_mov_b64 exec, s[10:11]", "gives EXEC bits, which nobody wrote"),
        ("s_or_b64 s[14:15], s[10:11], 0\n\ts_cbranch_scc1 .Lend\n.Lend:", "reads SCC, which nob"),
        ("s_add_u32 s14, s10, 1\n\ts_cselect_b32 s15, 0, 1", "reads SCC, which nobody wrote"),
        ("s_add_u32 s14, s10, 1\n\ts_addc_u32 s15, 0, 1\n\ts_cmp_eq_u32 s15, 0", "reads s15, whic"),
    ],
)
def test_masks_that_nobody_wrote_are_not_used(use: str, message: str) -> None:
    assert fault(MASKS.format(use=use)).message.startswith(message)
