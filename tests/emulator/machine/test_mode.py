"""The mode that a kernel's descriptor asks for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.mode import Machine, machine_of
from mfmadsl.emulator.text.assembly import parse_assembly, parse_instruction
from tests.emulator.waves import kernel, put, vector, wave

PROGRAM = parse_assembly(kernel("s_nop 0"))


def test_what_the_descriptor_leaves_out() -> None:
    """LLVM's assembler flushes denormals of f32 then, and only those."""
    assert machine_of(PROGRAM) == Machine("gfx942", ("f32",), ieee=True, dx10_clamp=True)


def test_what_the_descriptor_says() -> None:
    directives = {"float_denorm_mode_32": 3, "float_denorm_mode_16_64": 0, "ieee_mode": 0,
                  "dx10_clamp": 0}  # fmt: skip
    machine = machine_of(replace(PROGRAM, directives=directives))
    assert machine == Machine("gfx942", ("f16", "f64"), ieee=False, dx10_clamp=False)
    assert machine.mode == 0b00_0011_0000


@pytest.mark.parametrize(
    ("name", "value"),
    [("float_denorm_mode_32", 1), ("float_denorm_mode_16_64", 2), ("float_round_mode_32", 3)],
)
def test_modes_that_are_not_emulated_are_refused(name: str, value: int) -> None:
    with pytest.raises(EmulationError, match=f"{name}.* is not emulated"):
        machine_of(replace(PROGRAM, directives={name: value}))


@pytest.mark.parametrize(
    ("code", "flushed", "kept"),
    [
        ("v_add_f32 v0, v1, v1", 0, 2),
        ("v_pk_add_f16 v0, v1, v1", 2, 2),
        ("v_fma_mix_f32 v0, v1, 1.0, v1", 0, 2),
        ("v_exp_f32 v0, v1", 0x3F800000, 0x3F800000),
        ("v_cvt_f16_f32 v0, v1", 0, 0),
        ("v_rcp_f32 v0, v1", 0x7F800000, 0x7F800000),
        ("v_sqrt_f32 v0, v1", 0, 0),
        ("v_log_f32 v0, v1", 0xFF800000, 0xFF800000),
        ("v_mov_b32 v0, v1", 1, 1),
    ],
)
def test_denormals(code: str, flushed: int, kept: int) -> None:
    """Of the smallest one, in both modes; some instructions always flush those of f32."""
    for machine, expected in ((Machine("gfx942", ("f32",)), flushed), (Machine("gfx942"), kept)):
        waves = wave()
        put(waves, {"v1": np.full(64, 1, np.uint32)})
        with np.errstate(all="ignore"):
            compile_instruction(parse_instruction(code), machine).execute(waves)
        assert vector(waves, 0)[0] == expected


def test_comparisons_flush_denormals() -> None:
    for machine, expected in ((Machine("gfx942", ("f32",)), 0), (Machine("gfx942"), 2**32 - 1)):
        waves = wave()
        put(waves, {"v1": np.full(64, 1, np.uint32)})
        line = parse_instruction("v_cmp_lt_f32_e32 vcc, 0, v1")
        compile_instruction(line, machine).execute(waves)
        assert waves.scalar[106, 0] == expected


@pytest.mark.parametrize(("factor", "scale"), [("mul:2", 2), ("mul:4", 4), ("div:2", 0.5)])
def test_what_is_scaled_has_no_negative_zero(factor: str, scale: float) -> None:
    """Where denormals are flushed and the mode is not that of IEEE 754; elsewhere nothing is."""
    numbers = np.resize(np.array([3, -3, 0, -0.0, 2.0**-126], np.float32), 64)
    line = parse_instruction(f"v_add_f32_e64 v0, v1, v1 {factor}")
    for machine in (Machine("gfx942", ("f32",), ieee=False), Machine("gfx942", ("f32",))):
        waves = wave()
        put(waves, {"v1": numbers})
        compile_instruction(line, machine).execute(waves)
        found = vector(waves, 0, np.float32)
        if machine.ieee:
            np.testing.assert_array_equal(found.view(np.uint32), (numbers * 2).view(np.uint32))
        else:
            expected = numbers * 2 * np.float32(scale) + np.float32(0)
            np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
