"""An accelerator that is no matrix core: from its description to a matmul, step by step.

    python examples/tmm16/run.py [--spec FILE] [--size N] [--json FILE]

The C function is compiled by the clang that the pip package `ziglang` carries: no compiler of the
system is asked for. README.md beside this file tells what the steps do.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import tvm
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.target.codegen import llvm_get_system_cpu

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # `examples`

from examples.options import check_outputs
from examples.process import exit_code
from examples.tmm16.blocked import blocked
from examples.tmm16.decomposed import decomposed
from examples.tmm16.scopes import scoped
from examples.tmm16.tensorized import tensorized
from examples.tmm16.unit import SPEC, NoCompilerError, described, module
from mfmadsl import MfmadslError
from mfmadsl.output import OutputError, write_file
from mfmadsl.schedule import matmul

Change = Callable[[Schedule, ModuleType], object]
STEPS: tuple[tuple[str, str, Change], ...] = (
    ("blocked", "tiles of the unit", blocked),
    ("scopes", "tiles in its memories", scoped),
    ("decomposed", "zeros ahead of the sums", decomposed),
    ("tensorized", "a call of its function", tensorized),
)

RUNS = 3  # of which the fastest counts


@dataclass(frozen=True)
class Timed:
    """A step: the seconds of a product, and the largest error over what rounding allows."""

    step: str
    change: str
    seconds: float
    gflops: float
    error: float

    @property
    def right(self) -> bool:
        return self.error <= 1


def timed(unit: ModuleType, size: int, step: tuple[str, str, Change]) -> Timed:
    """Build a step for this CPU and run it: C = A x B^T of size x size floats."""
    name, change, schedule = step
    sch = Schedule(matmul(size, size, size, unit.A_DTYPE, unit.OUT_DTYPE, b_transposed=True))
    schedule(sch, unit)
    target = Target({"kind": "llvm", "mcpu": llvm_get_system_cpu()})
    function = tvm.compile(sch.mod, target=target)["main"]
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((size, size)).astype(np.float32) for _ in "ab")
    c = tvm.runtime.tensor(np.full((size, size), np.nan, np.float32))
    arguments = tvm.runtime.tensor(a), tvm.runtime.tensor(b), c
    taken = []
    for _ in range(RUNS):
        start = time.perf_counter()
        function(*arguments)
        taken.append(time.perf_counter() - start)
    seconds = min(taken)
    error = np.abs(c.numpy() - a.astype(np.float64) @ b.T.astype(np.float64))
    bound = np.abs(a.astype(np.float64)) @ np.abs(b.T.astype(np.float64)) * (size * 2.0**-24)
    worst = float((error / bound).max())
    worst = worst if np.isfinite(worst) else float("inf")
    return Timed(name, change, seconds, 2 * size**3 / seconds / 1e9, worst)


def table(found: Sequence[Timed]) -> str:
    """A line for each step."""
    lines = [
        f"{'step':<12}{'what is new':<26}{'seconds':>8}{'GFLOP/s':>9}{'speed-up':>10}  numbers"
    ]
    before: float | None = None
    for each in found:
        faster = f"{before / each.seconds:.2f}" if before else ""
        lines.append(
            f"{each.step:<12}{each.change:<26}{each.seconds:>8.2f}{each.gflops:>9.1f}{faster:>10}  "
            f"{'agree' if each.right else 'DIFFER'}"
        )
        before = each.seconds
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, run and compare each step; 1 if a number or the description is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--spec", type=Path, default=SPEC, help="the accelerator; tmm16.mfma")
    parser.add_argument("--size", type=int, default=1024, help="of all three extents; 1024")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what is found as JSON")
    asked = parser.parse_args(arguments)
    if not 1 <= asked.size <= 4096:
        parser.error(f"--size takes a number from 1 to 4096: {asked.size}")
    try:
        check_outputs(asked.json)
        accelerator = described(asked.spec)
        unit = module(accelerator)
        tile = f"{unit.M}x{unit.N}x{unit.K}"
        if any(asked.size % extent for extent in (unit.M, unit.N, unit.K)):
            parser.error(f"--size {asked.size} is no multiple of the unit's {tile}")
        found = [timed(unit, asked.size, step) for step in STEPS]
        if asked.json is not None:
            write_file(
                asked.json, (json.dumps([asdict(t) for t in found], indent=2) + "\n").encode()
            )
    except (MfmadslError, OutputError, NoCompilerError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"C = A x B^T of {asked.size} cubed, on a unit of {tile}, on this CPU\n")
    print(table(found))
    return 0 if all(each.right for each in found) else 1


if __name__ == "__main__":
    sys.exit(exit_code(main))
