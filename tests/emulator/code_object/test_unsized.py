"""Code of which nobody says how long it is, as hand-written assembly leaves it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.backend.gpu.linker import link
from mfmadsl.emulator import emulate
from mfmadsl.emulator.code_object import CodeObject, CodeObjectError, read_code_object
from mfmadsl.emulator.code_object.disassemble import disassemble
from mfmadsl.model import ARCHITECTURES, architecture
from tests.emulator.code_object.objects import code_object, object_file, two_kernels

CHIPS = list(ARCHITECTURES)


def unsized(arch: str, other: str = "s_nop 0", typed: bool = True, after: str = "") -> CodeObject:
    """The two kernels without their sizes; labels of `double` are symbols, as Tensile's are."""
    text = re.sub(r"\t\.size.*\n", "", two_kernels(arch, other=other)).replace(".Lagain", "again")
    text = text.replace(".Lother_end:\n", f"{after}\n.Lother_end:\n")
    if not typed:
        text = re.sub(r"\t\.type.*\n", "", text)
    linked = link(object_file(text, arch))
    assert linked is not None
    return read_code_object(linked)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("typed", [True, False])
def test_it_reaches_to_the_next_kernel_and_to_the_end_of_its_section(
    arch: str, typed: bool
) -> None:
    """Whether functions or not; labels in between end nothing, and what fills up is no harm."""
    whole, found = read_code_object(code_object(arch)), unsized(arch, typed=typed)
    for name, kernel in whole.kernels.items():
        code = found.kernels[name].code
        assert not found.kernels[name].sized
        assert code.startswith(kernel.code)
        filling = disassemble(code[len(kernel.code) :], architecture(arch))
        assert {each.text for each in filling} <= {"s_nop 0"}
    x = np.arange(64, dtype=np.float32)
    emulate(found.assembly("double"), [x], (1,), (64,))
    lane = np.arange(64, dtype=np.float32)
    assert (x == np.where(lane < 48, lane * 8 + np.float32(np.pi), lane)).all()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("like_code", ["", "0x7e020280, "])
def test_bytes_behind_that_are_no_code_are_left_out(arch: str, like_code: str) -> None:
    found = unsized(arch, after=f"\t.long {like_code}0xffffffff, 0xbf800000")
    assert found.kernels["other"].code.endswith(bytes.fromhex("ffffffff 000080bf"))
    text = found.assembly("other")
    assert text.count("s_nop") == text.count("s_endpgm") == 1


@pytest.mark.parametrize(
    "reached",
    [
        "s_cbranch_scc0 .Lover\n\ts_endpgm\n\t.long 0xffffffff\n.Lover:",  # a branch leads past it
        "\t.long 0xffffffff",
    ],
)
def test_bytes_that_may_be_executed_are_refused(reached: str) -> None:
    found = unsized("gfx942", other=reached)
    with pytest.raises(
        CodeObjectError, match=r"kernel `other`: byte .*, ffffffff .*no such instru"
    ):
        found.assembly("other")


def test_code_with_a_size_is_code_to_its_end() -> None:
    found = read_code_object(code_object("gfx942", other="s_endpgm\n\t.long 0xffffffff"))
    with pytest.raises(CodeObjectError, match="no such instruction"):
        found.assembly("other")


@given(st.binary(max_size=64), st.sampled_from(CHIPS))
def test_any_bytes_behind_an_end_are_no_harm(rest: bytes, arch: str) -> None:
    """What is left out is never executed: nothing before leads there."""
    end = bytes.fromhex("000081bf")
    try:
        found = disassemble(end + rest, architecture(arch), sized=False)
    except CodeObjectError:  # what follows is code, and leads to what is none
        return
    size = sum(each.size for each in found)
    assert all(each.target is None or each.target < size for each in found)
    assert size == 4 + len(rest) or found[-1].name in ("s_endpgm", "s_branch", "s_setpc_b64")
