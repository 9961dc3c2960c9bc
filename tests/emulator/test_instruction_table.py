"""The table of instructions as a whole."""

from __future__ import annotations

import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.assembly import parse_instruction
from mfmadsl.emulator.instruction_table import NO_EFFECT, compile_instruction
from mfmadsl.emulator.machine import Machine
from mfmadsl.emulator.scalar import MODE_INSTRUCTIONS, SCALAR
from mfmadsl.emulator.vector import vector_rows


@pytest.mark.parametrize(
    "code",
    [
        "v_frobnicate_b32 v0, v1",
        "v_add_u32 v0",
        "v_add_u32 v0, v1, v2 frobnicate",
        "s_add_u32 s0, s1",
        "global_load_dwordx5 v[0:4], v5, s[0:1]",
        "buffer_load_dword v0, v1",
        "ds_read_b256 v[0:7], v8",
        "v_mfma_f32_16x16x16_f7 v[0:3], v[4:5], v[6:7], v[0:3]",
        "v_mfma_f32_16x16x16_f16 v[0:1], v[4:5], v[6:7], v[0:1]",
        "image_load v[0:3], v4, s[0:7]",
        "s_setreg_b32 hwreg(HW_REG_STATUS), s0",
    ],
)
def test_what_is_not_known_is_named(code: str) -> None:
    with pytest.raises(EmulationError, match="unknown instruction") as error:
        compile_instruction(parse_instruction(code, 3), Machine("gfx942"))
    assert error.value.fault.instruction == code
    assert error.value.line == 3


def test_waits_and_hints_change_nothing() -> None:
    assert {"s_nop", "s_setprio", "s_sleep", "buffer_inv"} <= NO_EFFECT
    known = {*SCALAR, *MODE_INSTRUCTIONS, *vector_rows("gfx950")}
    assert not known & NO_EFFECT
