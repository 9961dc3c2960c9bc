"""Loads that look at a word again and again, until another wave has changed it.

Nothing in an instruction says that a word is a flag. A loop does that loads it from where its
registers never move, ends by what it finds, and neither stores anything nor passes a barrier: all
that it can do is to wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mfmadsl.emulator.machine.control import branch_target
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import EXEC, VCC, Register

_LONGEST = 64  # instructions of such a loop
_GETS_ON = re.compile(r".*_(store|write|mfma|smfmac)\w*|s_barrier|s_endpgm|ds_write\w*")
_LOAD = re.compile(r"ds_read\w*|(global|flat|buffer)_load_dword\w*")

_Word = tuple[str, int]
_SCC: _Word = ("scc", 0)
_VCC, _EXEC = {("s", VCC), ("s", VCC + 1)}, {("s", EXEC), ("s", EXEC + 1)}
_ASKED: dict[str, set[_Word]] = {
    "scc0": {_SCC}, "scc1": {_SCC}, "vccz": _VCC, "vccnz": _VCC, "execz": _EXEC, "execnz": _EXEC,
}  # fmt: skip
"""What a conditional branch asks, by the end of its mnemonic."""


def polls(program: Program) -> frozenset[int]:
    """The places of such loads in a program."""
    instructions = program.instructions
    found: set[int] = set()
    for end, branch in enumerate(instructions):
        start = branch_target(program, branch)
        if start is not None and start <= end < start + _LONGEST:
            body = instructions[start : end + 1]
            if not any(_GETS_ON.fullmatch(each.name) for each in body):
                found.update(start + place for place in _fixed_loads(body))
    return frozenset(found)


def _fixed_loads(body: Sequence[Instruction]) -> Iterator[int]:
    """The places in a loop of loads whose addresses nothing in it writes, and that decide whether
    it ends."""
    written = {word for each in body for word in _words(each, 0, 1)}
    for place, each in enumerate(body):
        fixed = _LOAD.fullmatch(each.name) and written.isdisjoint(_words(each, 1, 2))
        if fixed and _decides(_words(each, 0, 1), body[place + 1 :]):
            yield place


def _decides(words: set[_Word], body: Sequence[Instruction]) -> bool:
    """Whether what is in registers leads to a branch of what follows."""
    for each in body:
        asked = _ASKED.get(each.name.removeprefix("s_cbranch_"))
        if asked is not None and not words.isdisjoint(asked):
            return True
        # A scalar instruction may read its target, and others keep what it has in some lanes.
        if not words.isdisjoint(_words(each, 0, None)):
            words = words | _words(each, 0, 1) | ({_SCC} if each.name.startswith("s_") else set())
    return False


def _words(instruction: Instruction, first: int, last: int | None) -> set[_Word]:
    registers = (o for o in instruction.operands[first:last] if isinstance(o, Register))
    return {(register.bank, index) for register in registers for index in register.indices}
