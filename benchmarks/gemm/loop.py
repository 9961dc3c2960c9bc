"""What a GEMM kernel's main loop costs, read off its machine code."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from mfmadsl.emulator.profiler.main_loop import loop_instructions
from mfmadsl.emulator.text.assembly import Instruction

# LLVM 22's is the first that takes every buffer load, and that knows gfx950.
MCA = ["llvm-mca-22", "-mtriple=amdgcn", "-iterations=100", "-instruction-info=0",
       "-resource-pressure=0"]  # fmt: skip
UNIT = 65536
"""Multiply-adds that instruction counts are given for: 256 cycles of a gfx942 matrix core for types
of 16 bits, 128 for those of 8."""

_SHAPE = re.compile(r"v_mfma_(?:scale_)?\w+?_(\d+)x(\d+)x(\d+)_")
_ONE_RATE = re.compile(r"v_mfma_(?:scale_)?\w+_f8f6f4")  # for all formats, in llvm-mca


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

    def efficiency(self, per_cycle: int) -> float | None:
        """The share of the cycles that the matrix core needs, if it does so much in one."""
        return self.work / per_cycle / self.cycles if self.cycles else None


def measure(assembly: str, arch: str) -> Loop:
    """Count, and ask llvm-mca."""
    body = loop_instructions(assembly)
    return Loop(
        len(body),
        sum(map(_work, body)),
        _metadata(assembly, "vgpr_count"),
        _metadata(assembly, "vgpr_spill_count"),
        mca_cycles([i.text for i in body], arch),
    )


def _work(instruction: Instruction) -> int:
    shape = _SHAPE.match(instruction.name)
    return int(shape[1]) * int(shape[2]) * int(shape[3]) if shape else 0


def _metadata(assembly: str, key: str) -> int:
    found = re.search(rf"\.{key}:\s+(\d+)", assembly)
    return int(found[1]) if found else 0


def need_llvm_mca() -> None:
    """End the process, saying how to mend it, where llvm-mca is not there."""
    if shutil.which(MCA[0]) is None:
        raise SystemExit(f"{MCA[0]} is not found: apt install llvm-22")


def mca_cycles(body: list[str], arch: str) -> float | None:
    """Cycles of a turn; None of what llvm-mca has no rates for, or takes too long over, and where
    it is not there."""
    if shutil.which(MCA[0]) is None or any(_ONE_RATE.match(line) for line in body):
        return None
    text = "\n".join(line for line in body if "branch" not in line)
    try:
        done = subprocess.run(
            [*MCA, f"-mcpu={arch}"], input=text + "\n", capture_output=True, text=True,
            timeout=30, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    return int(found[1]) / 100 if found else None
