"""Faults planted in a correct kernel, one at a time."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mfmadsl.emulator.run import KernelLike


@dataclass(frozen=True)
class Mutant:
    """A kernel with one line changed. `kind` says how, `line` which, counted from 1."""

    kind: str
    line: int
    before: str
    after: str
    assembly: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int

    def __str__(self) -> str:
        return f"{self.kind}, line {self.line}: `{self.before}` -> `{self.after}`"


def mutants(kernel: KernelLike, seed: int = 0) -> list[Mutant]:
    """All mutants of a kernel; `seed` chooses the registers that are swapped."""
    lines = kernel.assembly.splitlines()
    start = lines.index(next(line for line in lines if line.startswith(f"{kernel.symbol}:")))
    end = next(i for i in range(start, len(lines)) if "s_endpgm" in lines[i])
    generator = random.Random(seed)
    found = []
    for index in range(start, end):
        code = lines[index].split(";")[0].rstrip()
        for kind, changed in _changes(code, generator):
            text = "\n".join([*lines[:index], changed, *lines[index + 1 :]]) + "\n"
            found.append(
                Mutant(kind, index + 1, code.strip(), changed.strip(), text, kernel.symbol,
                       kernel.grid, kernel.block, kernel.lds_bytes)
            )  # fmt: skip
    return found


def _changes(code: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    nothing = "\ts_nop 0"
    if "s_barrier" in code:
        yield "barrier dropped", nothing
    if "s_waitcnt" in code:
        yield "wait dropped", nothing
        for wait in re.finditer(r"(vmcnt|lgkmcnt)\((\d+)\)", code):
            yield "wait weakened", _replaced(code, wait, 2, str(int(wait[2]) + 1))
    if match := re.search(r"s_nop (\d+)", code):
        states = int(match[1])
        yield "wait state dropped", _replaced(code, match, 1, str(states - 1)) if states else ""
    if match := re.search(r"(?:ds|global|buffer)_.*offset[01]?:(\d+)", code):
        step = 1 if re.search(r"offset[01]:", code) else 16
        yield "offset shifted", _replaced(code, match, 1, str(int(match[1]) + step))
    registers = list(re.finditer(r"\bv(\d+)\b", code))
    if registers and re.match(r"\s(v_|ds_|global_|buffer_)", code):
        chosen = generator.choice(registers)
        other = int(chosen[1]) + (1 if int(chosen[1]) < 60 else -1)
        yield "register swapped", _replaced(code, chosen, 1, str(other))
    if match := re.search(r"v_mfma\S* \S+, v\[(\d+:\d+)\], v\[(\d+:\d+)\]", code):
        yield "operand swapped", _replaced(code, match, 1, match[2])
    if match := re.search(r"s_cmpk?_\w+ .*, (0x[0-9a-f]+|\d+)$", code):
        for step in (1, -1):
            if int(match[1], 0) + step >= 0:
                yield "bound wrong", _replaced(code, match, 1, hex(int(match[1], 0) + step))


def _replaced(code: str, match: re.Match[str], group: int, text: str) -> str:
    return code[: match.start(group)] + text + code[match.end(group) :]
