"""Cycles of instructions; those of matrix instructions have the library as their witness."""

from __future__ import annotations

import pytest

from mfmadsl.backend.instruction import build_instruction
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.profiler.chip import SLOT
from mfmadsl.emulator.profiler.cost import busy_cycles, issue_cycles
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.language import library
from mfmadsl.model import Intrinsic

ENTRIES = [(i, arch) for i in library().values() for arch, _ in i.cycles]


@pytest.mark.parametrize(("entry", "arch"), ENTRIES, ids=lambda x: getattr(x, "name", x))
def test_matrix_cycles_are_those_of_the_library(entry: Intrinsic, arch: str) -> None:
    """The library's agree with the waits that LLVM inserts; these are written from the manuals."""
    text = next(
        line for line in build_instruction(entry, arch).assembly.splitlines()
        if line.strip().startswith(("v_mfma", "v_smfmac"))
    )  # fmt: skip
    expected = dict(entry.cycles)[arch]
    operation = compile_instruction(parse_instruction(text.strip()), Machine(arch))
    assert operation.unit == "matrix"
    assert busy_cycles(operation) == expected
    assert issue_cycles(operation) == SLOT


@pytest.mark.parametrize(
    ("code", "cycles"),
    [
        ("v_add_f32 v0, v1, v2", 4),
        ("v_exp_f32 v0, v1", 16),
        ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", 8),
        ("v_mul_lo_u32 v0, v1, v2", 8),
        ("v_mov_b64_e32 v[0:1], v[2:3]", 4),
        ("s_add_u32 s0, s1, s2", 4),
    ],
)
def test_cycles_to_issue(code: str, cycles: int) -> None:
    operation = compile_instruction(parse_instruction(code), Machine("gfx942"))
    assert issue_cycles(operation) == cycles
