"""Cycles of instructions; those of matrix instructions have the library as their witness."""

from __future__ import annotations

import re

import pytest

from mfmadsl.backend.instruction import build_instruction
from mfmadsl.emulator.instructions.compare import COMPARE
from mfmadsl.emulator.instructions.packed import PAIRS_OF_F32, PAIRS_OF_HALVES
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.profiler.cost import SLOT, busy_cycles, issue_cycles
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


def test_cycles_of_all_rows() -> None:
    """By their names: what is approximated takes four turns, 64 bits and wide products two."""
    rows = {**vector_rows("gfx950"), **COMPARE, **PAIRS_OF_F32, **PAIRS_OF_HALVES}
    for name, row in rows.items():
        expected = 1
        if re.match(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_", name):
            expected = 4
        elif re.search(r"_[fuib]64(_|$)|v_mul_(lo|hi)_[ui]32", name) and name != "v_mov_b64":
            expected = 2
        assert row.issue_slots == expected, name


@pytest.mark.parametrize(
    ("code", "cycles"),
    [
        ("v_add_f32 v0, v1, v2", 4),
        ("v_exp_f32 v0, v1", 16),
        ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", 8),
        ("v_mul_lo_u32 v0, v1, v2", 8),
        ("v_mov_b64_e32 v[0:1], v[2:3]", 4),
        ("v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]", 8),
        ("v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7]", 8),
        ("v_div_fmas_f32 v0, v2, v4, v6", 4),
        ("s_add_u32 s0, s1, s2", 4),
    ],
)
def test_cycles_to_issue(code: str, cycles: int) -> None:
    operation = compile_instruction(parse_instruction(code), Machine("gfx942"))
    assert issue_cycles(operation) == cycles
