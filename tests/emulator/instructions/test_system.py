"""Clocks, traps and messages."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from tests.emulator.waves import run, wave


def test_clocks_count_instructions() -> None:
    waves = wave()
    for steps, cycles in ((10, 40), (2100, 8400)):
        waves.steps = steps
        run(waves, "s_memtime s[4:5]")
        run(waves, "s_memrealtime s[6:7]")
        assert waves.scalar[4:8, 0].tolist() == [cycles, 0, cycles // 21, 0]


def test_a_trap_is_told_and_that_of_debuggers_is_not() -> None:
    run(wave(), "s_trap 3")
    with pytest.raises(EmulationError, match="stops itself by trap 2, as a failed asse") as raised:
        run(wave(), "s_trap 2")
    assert (raised.value.fault.kind, raised.value.fault.wave) == ("trap", 0)


@pytest.mark.parametrize("text", ["sendmsg(MSG_INTERRUPT)", "1"])
def test_an_interrupt_of_the_host_does_nothing(text: str) -> None:
    waves = wave()
    before = waves.scalar.copy()
    run(waves, f"s_sendmsg {text}")
    assert np.array_equal(waves.scalar, before)


@pytest.mark.parametrize(
    "code", ["s_sendmsg sendmsg(MSG_GET_DOORBELL)", "s_sendmsg 3", "s_trap 256", "s_trap s4",
             "s_memtime s4", "s_setreg_b32 hwreg(HW_REG_SH_MEM_BASES), s4"],
)  # fmt: skip
def test_what_has_no_meaning_here_is_refused(code: str) -> None:
    with pytest.raises(EmulationError):
        run(wave(), code)
