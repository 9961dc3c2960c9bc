"""How long an instruction keeps what executes it.

Sources: the passes of matrix instructions in the ISA manuals (MI100, MI200, MI300, CDNA4), chapter
7; rates of the vector ALU in "Performance model" of ROCm Compute Profiler.
"""

from __future__ import annotations

import re

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register
from mfmadsl.error import ArgumentError
from mfmadsl.model import CDNA, assumed

_MATRIX = re.compile(r"v_(mfma|smfmac)\w*?_(\d+)x(\d+)x(\d+)(?:_?(\d+)b)?_?(\w*)")
_SLOW = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_WIDE = re.compile(r"v_(pk_)?\w+_(f64|u64|i64|b64)(_|$)|v_mul_(lo|hi)_[ui]32|v_mad_[ui]64")

SLOT = CDNA.issue_slot
"""Cycles between two turns of a SIMD to issue, alike on all chips."""


def matrix_cycles(instruction: Instruction, arch: str) -> int:
    """Cycles that the matrix core is busy with one instruction.

    Raises ArgumentError if it is no matrix instruction.
    """
    match = _MATRIX.match(instruction.name)
    target = instruction.operands[0] if instruction.operands else None
    if not match or not isinstance(target, Register):
        raise ArgumentError(f"{instruction.name} is no matrix instruction")
    m, n, kinds = int(match[2]), int(match[3]), match[6]
    chip = assumed(arch)
    double = "f64" in instruction.name
    if m == 4:
        return 16 if double else 8
    blocks = target.count // (2 if double else 1) * LANES // (m * n)
    if double:
        return chip.f64_cycles
    slow = 32 if m == 16 else 64
    if blocks > 1 or not chip.fast_matrix or kinds in ("f32", "f32_e64"):
        return slow
    if "f8f6f4" in kinds:  # eight bits in A or B: formats 0 and 1
        formats = (int(instruction.modifiers.get(x, "0")) for x in ("cbsz", "blgp"))
        return slow if min(formats) < 2 else slow // 2
    return slow // 2


def issue_cycles(instruction: Instruction, operation: Operation | None) -> int:
    """Cycles until the unit that executes an instruction takes the next one."""
    if operation is None or operation.unit != "valu":
        return SLOT
    if _SLOW.match(instruction.name):
        return 4 * SLOT
    if _WIDE.match(instruction.name) and not instruction.name.startswith("v_mov_b64"):
        return 2 * SLOT
    return SLOT
