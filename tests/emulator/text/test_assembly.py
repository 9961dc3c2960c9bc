"""Reading LLVM's assembly text."""

from __future__ import annotations

import pytest

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.assembly import parse_assembly, parse_instruction
from mfmadsl.emulator.text.operand import AssemblySymbol, Literal, Register
from tests.emulator.waves import kernel


def test_an_instruction_is_a_name_operands_and_modifiers() -> None:
    found = parse_instruction("global_load_dwordx4 v[0:3], v4, s[2:3] offset:64 nt", 7)
    assert found.name == "global_load_dwordx4"
    assert found.operands == (Register("v", 0, 4), Register("v", 4, 1), Register("s", 2, 2))
    assert found.modifiers == {"offset": "64", "nt": "1"}
    assert found.number("offset") == 64
    assert found.line == 7


def test_lists_in_modifiers_are_kept_whole() -> None:
    found = parse_instruction("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]")
    assert found.modifiers == {"op_sel": "[0,1]"}
    assert len(found.operands) == 3


def test_constants_and_labels() -> None:
    assert parse_instruction("v_mul_f32_e32 v0, 0.5, v1").operands[1] == Literal("0.5")
    assert parse_instruction("s_branch .LBB0_1").operands == (AssemblySymbol(".LBB0_1"),)


def test_a_program_has_labels_directives_and_arguments() -> None:
    program = parse_assembly(kernel("\n\ts_nop 0 ; comment\n.LBB0_1:\n\ts_branch .LBB0_1", 2))
    assert program.arch == "gfx942"
    assert [i.name for i in program.instructions] == ["s_nop", "s_branch", "s_endpgm"]
    assert program.labels == {"kernel": 0, ".LBB0_1": 1}
    assert program.directive("next_free_vgpr") == 32
    assert program.directive("dx10_clamp") == 0
    assert [(a.name, a.offset, a.size) for a in program.arguments] == [("p0", 0, 8), ("p1", 8, 8)]


def test_the_line_of_an_operand_that_cannot_be_read() -> None:
    with pytest.raises(EmulationError, match=r"line 5: `v_mov_b32_e32 v0, \?\?`: cannot read"):
        parse_assembly(kernel("\n\tv_mov_b32_e32 v0, ??"))


def test_several_kernels_need_a_name() -> None:
    two = kernel("") + kernel("").replace("kernel", "other").replace(
        ".amdhsa_other", ".amdhsa_kernel"
    )
    two = two.replace("amdhsa.others", "amdhsa.kernels").replace(
        "end_amdhsa_other", "end_amdhsa_kernel"
    )
    with pytest.raises(EmulationError, match="several kernels, name one: kernel, other"):
        parse_assembly(two)
    assert parse_assembly(two, "other").name == "other"
    with pytest.raises(EmulationError, match="no kernel `third`, but: kernel, other"):
        parse_assembly(two, "third")


def test_a_line_that_is_too_long_is_no_instruction() -> None:
    with pytest.raises(EmulationError, match=r"line 7: .*a line of 100012 characters") as error:
        parse_instruction("s_mov_b32 s0" + "x" * 100_000, 7)
    assert len(str(error.value)) < 200
    with pytest.raises(EmulationError, match="is no instruction"):
        parse_instruction("v_mov_b32 v0, " + "sext(" * 10_000 + "v1" + ")" * 10_000)
