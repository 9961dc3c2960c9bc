"""Scalar memory is read in whole words: the chip drops the last two bits of an address."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.sanitizer import sanitize
from tests.emulator.waves import kernel

CODE = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_mov_b32 s6, {offset}
	s_waitcnt lgkmcnt(0)
	s_add_u32 s8, s4, {base}
	s_addc_u32 s9, s5, 0
	{load}
	v_mov_b32_e32 v1, 0
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v2, s7
	global_store_dword v1, v2, s[4:5]"""
LOAD, OFFSET = "s_load_dword s7, s[8:9], 0x8", "s_load_dword s7, s[8:9], s6"


def text(load: str, base: int = 0, offset: int = 0) -> str:
    return kernel(CODE.format(load=load, base=base, offset=offset))


@pytest.mark.parametrize(
    ("load", "base", "offset", "odd"),
    [(LOAD, 0, 0, 0), (LOAD, 2, 0, 2), (OFFSET, 0, 8, 0), (OFFSET, 0, 11, 3),
     ("s_load_dword s7, s[8:9], 0x9", 0, 0, 1)],
)  # fmt: skip
def test_bits_that_do_not_count_are_told(load: str, base: int, offset: int, odd: int) -> None:
    words = np.arange(100, 104, dtype=np.uint32)
    emulate(text(load, base, offset), [words], (1,), (64,))
    assert words[0] == 102  # as the chip does
    found = sanitize(text(load, base, offset), [words], (1,), (64,), keep_going=True).faults
    assert [fault.kind for fault in found] == ["misaligned"] * bool(odd)
    if odd:
        with pytest.raises(EmulationError, match=f"the address is {odd} bytes behind a word"):
            sanitize(text(load, base, offset), [words], (1,), (64,))
