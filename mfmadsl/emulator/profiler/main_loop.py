"""The loop that a kernel spends its time in."""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.emulator.machine.control import branch_target
from mfmadsl.emulator.text.assembly import Instruction, Program, parse_assembly


def main_loop(program: Program, executed: Sequence[int]) -> range | None:
    """The places of its instructions: of all loops the one that executes the most of the work.

    Work is matrix instructions where a loop has any, else all instructions; of nested loops with
    the same work the innermost counts. None if the kernel has no loop that runs more than once.
    """
    best: tuple[tuple[int, int, int], range] | None = None
    for place, instruction in enumerate(program.instructions):
        start = branch_target(program, instruction)
        if start is None or start > place or not executed[place]:
            continue
        body = range(start, place + 1)
        matrix = sum(executed[i] for i in body if is_matrix(program.instructions[i]))
        score = (matrix, sum(executed[i] for i in body) if not matrix else 0, -len(body))
        if best is None or score > best[0]:
            best = score, body
    return best[1] if best else None


def loop_instructions(assembly: str) -> list[Instruction]:
    """The instructions of a text's main loop, as far as the text alone tells which that is.

    All of the kernel's if it has no loop.
    """
    program = parse_assembly(assembly)
    found = main_loop(program, [1] * len(program.instructions))
    return [program.instructions[place] for place in found or range(len(program.instructions))]


def is_matrix(instruction: Instruction) -> bool:
    """Whether it is a matrix instruction."""
    return instruction.name.startswith(("v_mfma", "v_smfmac"))
