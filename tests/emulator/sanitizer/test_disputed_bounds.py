"""A lane of a buffer instruction that is past the end by one of two rules, and inside by the other.

The ISA manuals compare the whole offset with the buffer's size, LLVM's intrinsics leave the scalar
offset out of it (docs/emulator.md). A buffer of 1024 bytes, of which 256 threads move a word each.
"""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.sanitizer import Findings, sanitize
from mfmadsl.model import ARCHITECTURES
from tests.emulator.waves import kernel

SETUP = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_movk_i32 s6, 0x400
	s_mov_b32 s7, 0x27000
	s_mov_b32 s8, SCALAR
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v2, 7
	v_mov_b32_e32 v3, 8
	v_mov_b32_e32 v4, 9
	v_mov_b32_e32 v5, 10
	v_readfirstlane_b32 s9, v1
	s_mov_b32 m0, s9
	s_waitcnt lgkmcnt(0)
	"""
ACCESSES = [
    ("buffer_load_dword v2, v1, s[4:7], s8 offen", 4),
    ("buffer_load_ubyte v2, v1, s[4:7], s8 offen", 4),
    ("buffer_load_dwordx4 v[2:5], v1, s[4:7], s8 offen", 16),
    ("buffer_store_dword v2, v1, s[4:7], s8 offen", 4),
    ("buffer_atomic_add v2, v1, s[4:7], s8 offen", 4),
    ("buffer_load_dword v1, s[4:7], s8 offen lds", 4),
]


def sanitized(access: str, scalar: int, chip: str = "gfx942", threads: int = 256) -> Findings:
    code = SETUP.replace("SCALAR", str(scalar)) + access + "\n\ts_waitcnt vmcnt(0)"
    text = kernel(code, lds=1040).replace("gfx942", chip)
    return sanitize(text, [np.zeros(256, np.uint32)], (1,), (threads,))


@pytest.mark.parametrize("chip", ARCHITECTURES)
@pytest.mark.parametrize(("access", "size"), ACCESSES)
def test_what_only_one_rule_allows_is_a_fault(access: str, size: int, chip: str) -> None:
    # Of 64 threads the last one reaches byte 252 + size - 1.
    last = 1024 - 252 - size
    assert sanitized(access, last // 4 * 4, chip, 64).faults == ()
    with pytest.raises(EmulationError) as raised:
        sanitized(access, last // 4 * 4 + 4, chip, 64)
    fault = raised.value.fault
    assert (fault.kind, fault.lane) == ("disputed-bounds", 63)
    assert f"the scalar offset, {last // 4 * 4 + 4}, counts, as the ISA manual says" in str(fault)


@pytest.mark.parametrize(("access", "size"), ACCESSES)
@pytest.mark.parametrize("scalar", [512, 1024])
def test_the_last_bytes_without_the_scalar_are_disputed(
    access: str, size: int, scalar: int
) -> None:
    """One lane, whose offset alone ends exactly where the buffer does; one that starts
    there is outside by both rules."""
    exact = f"v_mov_b32_e32 v1, {1024 - size}\n\t" + access
    with pytest.raises(EmulationError) as raised:
        sanitized(exact, scalar, threads=1)
    assert raised.value.fault.kind == "disputed-bounds"
    past = "v_mov_b32_e32 v1, 0x400\n\t" + access
    assert sanitized(past, scalar, threads=1).faults == ()


@pytest.mark.parametrize(("access", "size"), ACCESSES)
def test_what_both_rules_forbid_is_none(access: str, size: int) -> None:
    """The offset alone is past the end: a lane sent there moves nothing, whatever the scalar is."""
    del size
    sent = access.replace("v1,", "v6,")
    far = "v_bfrev_b32_e32 v6, 1\n\t"
    assert sanitized(far + sent, 512).faults == ()


@pytest.mark.parametrize(("access", "size"), ACCESSES)
def test_without_a_scalar_offset_the_rules_agree(access: str, size: int) -> None:
    del size
    past = access.replace(" s8 offen", " 0 offen offset:4")
    assert sanitized(past, 0).faults == ()


def test_who_does_not_ask_gets_the_manuals_rule() -> None:
    code = SETUP.replace("SCALAR", "4") + (
        "buffer_load_dword v2, v1, s[4:7], s8 offen\n\ts_waitcnt vmcnt(0)\n\t"
        "buffer_store_dword v2, v1, s[4:7], 0 offen"
    )
    result = np.arange(256, dtype=np.uint32) + 5
    emulate(kernel(code, lds=1024), [result], (1,), (256,))
    assert (result == [*range(6, 261), 0]).all()
