"""The wait states that LLVM 22 leaves out of what it emits.

Where two paths of different lengths meet behind a matrix instruction, it counts one of them: its
search takes a block that it has come to once for done (`GCNHazardRecognizer`). And it looks back
over 19 wait states at most, of which gfx950's longest matrix instructions need 20.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from mfmadsl.emulator.sanitizer.wait_states import lacking, ways
from mfmadsl.emulator.text.assembly import lines_of_code, parse_assembly
from mfmadsl.emulator.text.registers import target_of
from mfmadsl.model import assumed

_KERNEL = re.compile(r"^[ \t]*\.amdhsa_kernel[ \t]+(\S+)", re.MULTILINE)
_LONGEST_NOP = 8  # wait states of one `s_nop` as LLVM writes it
_REACH = 20  # instructions that a hazard reaches over at most
_LOOKED_BACK = 19  # wait states, LLVM's `MaxWaitStates`
_NEEDS_MORE = "CDNA4"  # the only family with an instruction that needs one more
_MATRIX = ("v_mfma_", "v_smfmac_")
_VECTORS = re.compile(r"\b([av])(?:(\d+)\b|\[(\d+):(\d+)\])")

_Graph = Mapping[int, Sequence[int]]


def with_wait_states(assembly: str) -> str:
    """LLVM's assembly text with an `s_nop` before each instruction that comes too early, on a path
    which meets another one of the same beginning, or by the one wait state that LLVM overlooks."""
    if not _KERNEL.search(assembly):
        return assembly
    while lines := _missing(assembly):
        assembly = "".join(_padded(assembly, lines))
    return assembly


def _missing(assembly: str) -> dict[int, int]:
    """How many wait states to put before lines, by their numbers from 1.

    What stands close behind another one that lacks some may lack none once that has them.
    """
    after = dict(enumerate(ways(assembly)))
    before: defaultdict[int, list[int]] = defaultdict(list)
    for place, others in after.items():
        for each in others:
            before[each].append(place)
    near = _near_joins(after, before)
    if assumed(target_of(assembly)[0]).family == _NEEDS_MORE:
        codes = [code for _, code in lines_of_code(assembly.splitlines())[0]]
        near |= _near_overlooked(codes, after)
    if not near:
        return {}
    first, *_ = _KERNEL.findall(assembly)
    program = parse_assembly(assembly, first)
    starts = [place for place in near if not near.issuperset(before[place])]
    starts += [place for place in near if not before[place]]
    lacks = lacking(program, starts, near)
    return {
        program.instructions[place].line: states
        for place, states in lacks.items()
        if not any(place - back in lacks for back in range(1, _REACH))
    }


def _near_joins(after: _Graph, before: _Graph) -> set[int]:
    """The places a few instructions around those where paths meet that have parted just before."""
    near: set[int] = set()
    for place, others in list(before.items()):
        if len(others) < 2:
            continue
        around = [_around(before, each) for each in others]
        if any(one & other for one, other in combinations(around, 2)):
            near.update(_around(after, place), *around)
    return near


def _near_overlooked(codes: Sequence[str], after: _Graph) -> set[int]:
    """The places from matrix instructions to what names their results just where LLVM's search for
    them has ended."""
    near: set[int] = set()
    for place, code in enumerate(codes):
        if not code.startswith(_MATRIX):
            continue
        results = _registers(code.partition(",")[0])
        pending = [(each, 0) for each in after[place]]
        while pending:
            behind, states = pending.pop()
            if states == _LOOKED_BACK and results & _registers(codes[behind]):
                near.update({place}, _around(after, place))
            states += _states(codes[behind])
            if states <= _LOOKED_BACK:
                pending += [(each, states) for each in after[behind]]
    return near


def _registers(code: str) -> set[tuple[str, int]]:
    """The vector registers that an instruction's text names."""
    return {
        (kind, number)
        for kind, one, first, last in _VECTORS.findall(code)
        for number in range(int(one or first), int(one or last) + 1)
    }


def _states(code: str) -> int:
    name, _, count = code.partition(" ")
    return int(count, 0) + 1 if name == "s_nop" else 1


def _around(graph: _Graph, place: int) -> set[int]:
    """The places to which a few steps lead."""
    found, last = {place}, {place}
    for _ in range(_REACH):
        last = {each for one in last for each in graph.get(one, ())} - found
        found |= last
    return found


def _padded(assembly: str, lines: Mapping[int, int]) -> Iterator[str]:
    for number, line in enumerate(assembly.splitlines(keepends=True), start=1):
        left = lines.get(number, 0)
        while left > 0:
            yield f"\ts_nop {min(left, _LONGEST_NOP) - 1}\n"
            left -= _LONGEST_NOP
        yield line
