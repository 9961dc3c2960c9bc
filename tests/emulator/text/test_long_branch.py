"""Branches that are longer than `s_branch` can say, in text and in machine code."""

from __future__ import annotations

import pytest

from mfmadsl.emulator import emulate
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.assembly import Program, parse_assembly
from tests.emulator.code_object.objects import code_object
from tests.emulator.waves import kernel

FORWARD = """\
s_getpc_b64 s[6:7]
.Lhere:
s_add_u32 s6, s6, (.Lto-.Lhere)&4294967295
s_addc_u32 s7, s7, (.Lto-.Lhere)>>32
s_setpc_b64 s[6:7]
s_nop 1
.Lto:
s_nop 2"""
BACK = """\
.Lto:
s_nop 2
s_getpc_b64 s[6:7]
.Lhere:
s_add_u32 s6, s6, (.Lto-.Lhere)&4294967295
s_addc_u32 s7, s7, (.Lto-.Lhere)>>32
s_setpc_b64 s[6:7]
s_nop 1"""


def led_to(program: Program) -> str:
    """The instruction where the only branch leads."""
    (branch,) = [each for each in program.instructions if each.name == "s_branch"]
    target = program.instructions[program.labels[str(branch.operands[0].name)]]  # type: ignore[union-attr]
    return target.text


@pytest.mark.parametrize("code", [FORWARD, BACK], ids=["forward", "back"])
def test_it_is_one_branch(code: str) -> None:
    assert led_to(parse_assembly(kernel(code))) == "s_nop 2"


@pytest.mark.parametrize("code", [FORWARD, BACK], ids=["forward", "back"])
@pytest.mark.parametrize("arch", ["gfx908", "gfx942"])
def test_it_is_one_branch_in_machine_code(code: str, arch: str) -> None:
    text = read_code_object(code_object(arch, other=code)).assembly("other")
    assert led_to(parse_assembly(text, "other")) == "s_nop 2"


@pytest.mark.parametrize(
    ("place", "other"),
    [
        ("s_add_u32 s6, s6", "s_add_u32 s8, s6"),
        ("s_addc_u32 s7, s7", "s_addc_u32 s7, s9"),
        ("s_addc_u32", "s_add_u32"),
        ("s_setpc_b64 s[6:7]", "s_swappc_b64 s[10:11], s[6:7]"),
        ("s_setpc_b64 s[6:7]", "s_setpc_b64 s[8:9]"),
        ("(.Lto-.Lhere)>>32", "(.Lother-.Lhere)>>32"),
        ("(.Lto-.Lhere)&", "(.Lto-.Lother)&"),
        (".Lhere:", ".Lother:"),
        ("&4294967295", ">>32"),
    ],
)
def test_what_only_looks_like_one_is_refused(place: str, other: str) -> None:
    code = FORWARD.replace(place, other, 1)
    assert code != FORWARD
    with pytest.raises(EmulationError):
        parse_assembly(kernel(code))


@pytest.mark.parametrize("offset", ["0x7fff0000", "-0x1000", "6"])
def test_an_address_of_something_else_is_refused(offset: str) -> None:
    code = "s_getpc_b64 s[6:7]\ns_add_u32 s6, s6, {}\ns_addc_u32 s7, s7, {}\ns_setpc_b64 s[6:7]"
    number = int(offset, 0)
    halves = number & 0xFFFFFFFF, number >> 32 & 0xFFFFFFFF
    text = read_code_object(code_object(other=code.format(*halves))).assembly("other")
    assert "s_branch" not in text
    with pytest.raises(EmulationError, match="where no instruction is known to begin"):
        emulate(text.replace("other", "kernel"), [], (1,), (64,))
