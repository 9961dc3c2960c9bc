"""What a GEMM kernel's main loop costs, read off its machine code."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from mfmadsl.emulator.profiler.main_loop import loop_instructions
from mfmadsl.emulator.text.assembly import Instruction

MCA = ["llvm-mca-19", "-mtriple=amdgcn", "-iterations=100", "-instruction-info=0",
       "-resource-pressure=0"]  # fmt: skip
UNIT = 65536
"""Multiply-adds that instruction counts are given for: 256 cycles of a gfx942 matrix core for types
of 16 bits, 128 for those of 8."""

_SHAPE = re.compile(r"v_mfma_(?:scale_)?\w+?_(\d+)x(\d+)x(\d+)_")
_BUFFER_LOAD = re.compile(
    r"buffer_load_(\w+) ([va]\S+), (\w+), (s\[\d+:\d+\]), (\w+)( offen)?( offset:\d+)?.*"
)
_WIDTHS = {"dword": "x", "dwordx2": "xy", "dwordx3": "xyz", "dwordx4": "xyzw"}


@dataclass(frozen=True)
class Loop:
    """One turn of one wave. `cycles` are llvm-mca's, each four of the clock; or None."""

    instructions: int
    work: int
    registers: int
    spilled: int
    cycles: float | None

    @property
    def per_unit(self) -> float:
        """Instructions for so many multiply-adds."""
        return self.instructions / self.work * UNIT

    def efficiency(self, per_cycle: int) -> float:
        """The share of the cycles that the matrix core needs, if it does so much in one."""
        return self.work / per_cycle / self.cycles if self.cycles else 0.0


def measure(assembly: str, arch: str) -> Loop:
    """Count, and ask llvm-mca where it knows the chip."""
    body = loop_instructions(assembly)
    return Loop(
        len(body),
        sum(map(_work, body)),
        _metadata(assembly, "vgpr_count"),
        _metadata(assembly, "vgpr_spill_count"),
        mca_cycles([i.text for i in body], arch) if arch != "gfx950" else None,
    )


def _work(instruction: Instruction) -> int:
    shape = _SHAPE.match(instruction.name)
    return int(shape[1]) * int(shape[2]) * int(shape[3]) if shape else 0


def _metadata(assembly: str, key: str) -> int:
    found = re.search(rf"\.{key}:\s+(\d+)", assembly)
    return int(found[1]) if found else 0


def mca_cycles(body: list[str], arch: str) -> float | None:
    """Cycles of a turn by llvm-mca 19; None where it fails or takes too long, as it may."""
    text = "\n".join(for_mca(line) for line in body if "branch" not in line)
    try:
        done = subprocess.run(
            [*MCA, f"-mcpu={arch}"], input=text + "\n", capture_output=True, text=True,
            timeout=30, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    return int(found[1]) / 100 if found else None


def for_mca(line: str) -> str:
    """llvm-mca 19 crashes on every untyped buffer load. A typed one has the same latency and counts
    in `vmcnt` alike, which a global load does not: llvm-mca counts that in `lgkmcnt` as well."""
    match = _BUFFER_LOAD.fullmatch(line)
    if match is None:
        return line
    kind, target, offset, buffer, step, offen, displacement = match.groups()
    return (
        f"tbuffer_load_format_{_WIDTHS.get(kind, 'x')} {target}, {offset}, {buffer}, {step} "
        f"format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_FLOAT]{offen or ''}{displacement or ''}"
    )
