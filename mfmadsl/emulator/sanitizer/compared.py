"""Loads of what a compare and swap expects: the first look of a loop that combines values.

LLVM makes such loops of the atomics that a chip lacks. The load may come before or after what
another wave writes: the compare and swap finds out, and is looked at itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import Register

_SWAP = re.compile(r"(?:(global|flat|buffer)_atomic_cmpswap|(ds)_cmpst_rtn_b(?:32|64))(?:_x2)?")
_LOAD = re.compile(r"(global|flat|buffer)_load_dword(x\d)?|ds_read2?\w*_b(32|64)")

_Words = frozenset[tuple[str, int]]


def compared(program: Program) -> frozenset[int]:
    """The places of such loads in a program."""
    instructions = program.instructions
    loads = (
        _load_of(_expected(each, match), instructions[:end])
        for end, each in enumerate(instructions)
        if (match := _SWAP.fullmatch(each.name)) is not None
    )
    return frozenset(place for place in loads if place is not None)


def _expected(swap: Instruction, match: re.Match[str]) -> _Words:
    """The registers with what must be there: of the LDS an operand, or else half of the data."""
    data = swap.operands[0 if match[1] == "buffer" else 2]
    if not isinstance(data, Register):
        return frozenset()  # nothing is returned: there is no loop
    words = list(data.indices)
    kept = words if match[2] else words[len(words) // 2 :]
    return frozenset((data.bank, index) for index in kept)


def _load_of(expected: _Words, before: Sequence[Instruction]) -> int | None:
    """The place of the load that these registers are from, by way of copies."""
    for place in range(len(before) - 1, -1, -1):
        each = before[place]
        written = _words(each, 0)
        if expected.isdisjoint(written):
            continue
        if _LOAD.fullmatch(each.name):
            return place if expected <= written else None
        if each.name not in ("v_mov_b32", "v_mov_b32_e32", "v_mov_b32_e64"):
            return None
        expected = expected - written | _words(each, 1)
    return None


def _words(instruction: Instruction, place: int) -> _Words:
    """The registers of an operand."""
    if place >= len(instruction.operands):
        return frozenset()
    operand = instruction.operands[place]
    if not isinstance(operand, Register):
        return frozenset()
    return frozenset((operand.bank, index) for index in operand.indices)
