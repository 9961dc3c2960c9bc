"""What a program lacks on any of its paths, whichever of them are taken.

Paths differ only by as much of them as the longest hazard reaches back, so that few meet at any one
place. A jump to a computed address ends a path.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.control import BRANCHES, COMPUTED, branch_label, is_control
from mfmadsl.emulator.machine.mode import Machine, machine_of
from mfmadsl.emulator.machine.operation import Operation, Unit, reads_of
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.sanitizer.wait_states.sequence import Sequences
from mfmadsl.emulator.text.assembly import (
    Instruction,
    Program,
    lines_of_code,
    parse_instruction,
)
from mfmadsl.emulator.text.operand import Register

_ENDS = ("s_endpgm", *COMPUTED)
_JUMPS = (*BRANCHES, *_ENDS)
_UNITS: dict[str, Unit] = {
    "v": "valu", "ds": "lds", "flat": "flat", "global": "vmem", "scratch": "vmem", "buffer": "vmem",
    "tbuffer": "vmem",
}  # fmt: skip
"""What executes an instruction, by how its mnemonic begins; all others the scalar ALU."""


def following(program: Program, place: int) -> list[int]:
    """Where a wave may be after the instruction at a place."""
    count = len(program.instructions)
    return _following(program.instructions[place], place, program.labels, count)


def ways(text: str) -> list[list[int]]:
    """`following` of each place of a program, of which only what may jump is read.

    Raises EmulationError where that cannot be read.
    """
    lines, labels = lines_of_code(text.splitlines())
    return [
        _following(parse_instruction(code, number), place, labels, len(lines))
        if code.startswith(_JUMPS)
        else [place + 1] * (place + 1 < len(lines))
        for place, (number, code) in enumerate(lines)
    ]


def _following(
    instruction: Instruction, place: int, labels: Mapping[str, int], count: int
) -> list[int]:
    label = branch_label(instruction)
    led_to = [labels[label]] if label is not None and label in labels else []
    if instruction.name == "s_branch" or instruction.name in _ENDS:
        return led_to
    return [*led_to, place + 1] if place + 1 < count else led_to


def lacking(program: Program, entries: Iterable[int], within: Container[int]) -> dict[int, int]:
    """How many wait states are missing before instructions, by their places.

    That is what the worst path to each lacks, of those that begin at `entries` and lead over places
    `within` some of the program.
    """
    sequences, machine = Sequences(program), machine_of(program)
    operations: dict[int, Operation | None] = {}
    found: dict[int, int] = {}
    pending = [(entry, 0) for entry in entries]
    seen = set(pending)
    while pending:
        place, number = pending.pop()
        instruction = program.instructions[place]
        if place not in operations:
            operations[place] = _operation(instruction, machine)
        number, lack = sequences.follow(number, place, instruction, operations[place])
        if lack is not None:
            found[place] = max(found.get(place, 0), lack.states)
        for after in following(program, place):
            if after in within and (after, number) not in seen:
                seen.add((after, number))
                pending.append((after, number))
    return found


def _operation(instruction: Instruction, machine: Machine) -> Operation | None:
    """What an instruction touches; one that is not emulated may read and write each operand."""
    if is_control(instruction):
        return None
    try:
        return compile_instruction(instruction, machine)
    except EmulationError:
        registers = tuple(each for each in instruction.operands if isinstance(each, Register))
        unit = _UNITS.get(instruction.name.partition("_")[0], "salu")
        return Operation(_not_executed, unit, reads_of(*registers), registers)


def _not_executed(waves: Waves) -> None:
    raise AssertionError("an instruction that nothing executes")
