"""What nobody wrote: in masks of lanes, in SCC and EXEC, and in lanes that DPP leaves."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.sanitizer import sanitize
from tests.emulator.waves import kernel


def messages(*code: str) -> list[str]:
    """What is reported of code in which nobody has written s14, s15, v1 and v2."""
    text = kernel("\n".join(line if line.endswith(":") else f"\t{line}" for line in code))
    findings = sanitize(text, [np.zeros(64, np.uint32)], (1,), (64,), keep_going=True)
    return [fault.message for fault in findings.faults]


SCC = "reads SCC, which nobody wrote"
JUMP = ("s_cbranch_scc0 .Lend", "s_nop 0", ".Lend:")


@pytest.mark.parametrize(
    "code", [JUMP, ["s_cselect_b32 s20, 1, 2"], ["s_addc_u32 s20, 1, 2"], ["s_cmov_b32 s2, 1"]]
)
def test_a_condition_that_nobody_set(code: list[str]) -> None:
    assert messages(*code) == [SCC]
    assert messages("s_cmp_eq_u32 s2, s2", *code) == []


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("s_or_b32 s20, s14, 1", True),  # not 0, whatever s14 is
        ("s_and_b32 s20, s14, 1", False),
        ("s_and_b32 s20, s14, 0", True),
        ("s_andn2_b64 s[20:21], s[14:15], exec", True),  # all lanes are active
        ("s_and_saveexec_b64 s[20:21], exec", True),
        ("s_lshl_b32 s20, s14, 4", False),
        ("s_not_b64 s[20:21], s[14:15]", False),
    ],
)
def test_whether_a_result_is_0(code: str, known: bool) -> None:
    assert messages(code, *JUMP) == [SCC] * (not known)


EXEC = "gives EXEC bits, which nobody wrote"


def test_lanes_that_may_be_on() -> None:
    assert messages("s_mov_b64 exec, s[14:15]") == [EXEC]
    assert messages("s_and_saveexec_b64 s[20:21], s[14:15]") == [EXEC]
    assert messages("s_mov_b64 exec, 0", "s_and_saveexec_b64 s[20:21], s[14:15]") == []
    assert messages("s_and_b64 exec, s[14:15], 0") == []


SOME = "s_mov_b64 exec, 0xff"
PHI = "s_or_b64 s[14:15], s[14:15], exec"
"""LLVM's: a mask begins with a value of which no bit matters, and gets those of active lanes."""


def test_of_a_mask_the_bits_of_active_lanes_count() -> None:
    choose = "v_cndmask_b32_e64 v9, 0, 1, s[14:15]"
    assert messages(SOME, PHI, choose) == []
    assert messages(SOME, choose) == ["reads s14, which nobody wrote"]
    assert messages(SOME, PHI, "s_mov_b64 exec, 0x1ff", choose) == ["reads s14, which nobody wrote"]


def test_a_mask_is_cut_to_active_lanes_before_a_branch() -> None:
    jump = ("s_cbranch_vccz .Lend", "s_nop 0", ".Lend:")
    assert messages(SOME, PHI, "s_and_b64 vcc, exec, s[14:15]", *jump) == []
    assert messages(SOME, PHI, "s_andn2_b64 vcc, s[14:15], exec", *jump) == [
        "reads vcc, which nobody wrote"
    ]
    assert messages(SOME, PHI, "s_mov_b64 vcc, s[14:15]", *jump) == []  # some bits are 1


DPP = "v_mov_b32_dpp v1, v0 {}"
USE = "v_add_u32_e32 v9, v1, v1"


@pytest.mark.parametrize(
    ("control", "left"),
    [
        ("row_shr:1 row_mask:0xf bank_mask:0xf", True),
        ("row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", False),
        ("quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", False),
        ("quad_perm:[1,0,3,2] row_mask:0xe bank_mask:0xf bound_ctrl:1", True),
        ("row_bcast:15 row_mask:0xa bank_mask:0xf", True),
    ],
)
def test_lanes_that_dpp_leaves(control: str, left: bool) -> None:
    found = messages(DPP.format(control), USE)
    assert found == ["reads v1, which nobody wrote"] * left
    assert messages("v_mov_b32_e32 v1, 0", "s_nop 1", DPP.format(control), USE) == []
