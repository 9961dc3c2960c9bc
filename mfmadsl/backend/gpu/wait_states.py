"""The wait states that LLVM 22 leaves out of what it emits.

Where two paths of different lengths meet behind a matrix instruction, it counts one of them: its
search takes a block that it has come to once for done (`GCNHazardRecognizer`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mfmadsl.emulator.sanitizer.wait_states import lacking
from mfmadsl.emulator.text.assembly import parse_assembly

_KERNEL = re.compile(r"^[ \t]*\.amdhsa_kernel[ \t]+(\S+)", re.MULTILINE)
_LONGEST_NOP = 8  # wait states of one `s_nop` as LLVM writes it
_REACH = 20  # instructions that one hazard may lie behind another and be mended with it


def with_wait_states(assembly: str) -> str:
    """LLVM's assembly text with an `s_nop` before each instruction that comes too early on any
    path."""
    while lines := _missing(assembly):
        assembly = "".join(_padded(assembly, lines))
    return assembly


def _missing(assembly: str) -> dict[int, int]:
    """How many wait states to put before lines, by their numbers from 1.

    What stands close behind another one that lacks some may lack none once that has them.
    """
    first, *others = _KERNEL.findall(assembly)
    program = parse_assembly(assembly, first)
    lacks = lacking(program, [program.entry, *(program.labels[name] for name in others)])
    return {
        program.instructions[place].line: states
        for place, states in lacks.items()
        if not any(place - back in lacks for back in range(1, _REACH))
    }


def _padded(assembly: str, lines: Mapping[int, int]) -> Iterator[str]:
    for number, line in enumerate(assembly.splitlines(keepends=True), start=1):
        left = lines.get(number, 0)
        while left > 0:
            yield f"\ts_nop {min(left, _LONGEST_NOP) - 1}\n"
            left -= _LONGEST_NOP
        yield line
