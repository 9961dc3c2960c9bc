"""What lacks wait states on any path through a kernel, without running it."""

from __future__ import annotations

from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.control import PASSED, branch_target
from mfmadsl.emulator.machine.mode import machine_of
from mfmadsl.emulator.sanitizer.wait_states import Sequences
from mfmadsl.emulator.text.assembly import parse_assembly


def lacking(text: str, kernel: str | None = None) -> dict[int, str]:
    """By line, what the instructions of a kernel lack behind others."""
    program = parse_assembly(text, kernel)
    machine, sequences = machine_of(program), Sequences(program)
    operations = [
        None if _passes(each.name) else compile_instruction(each, machine)
        for each in program.instructions
    ]
    found: dict[int, str] = {}
    seen, ahead = set[tuple[int, int]](), [(program.entry, 0)]
    while ahead:
        place, sequence = at = ahead.pop()
        if at in seen:
            continue
        seen.add(at)
        instruction = program.instructions[place]
        number, lack = sequences.follow(sequence, place, instruction, operations[place])
        if lack is not None:
            found[instruction.line] = lack.message
        target = branch_target(program, instruction)
        if target is not None:
            ahead.append((target, number))
        if instruction.name not in ("s_branch", "s_endpgm"):
            ahead.append((place + 1, number))
    return found


def _passes(name: str) -> bool:
    return name in PASSED or name.startswith(("s_branch", "s_cbranch"))
