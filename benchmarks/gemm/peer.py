"""Triton's GEMM on the chip model: which of its settings is the fastest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import mfmadsl
from benchmarks.gemm.case import LARGE, LOW, Case, Shape
from mfmadsl.emulator.profiler import Profile
from mfmadsl.model import ARCHITECTURES, product_of

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, "-m", "benchmarks.gemm.triton_kernels"]
WORKERS = os.cpu_count() or 1
FINALISTS = 4
RUNS = 3  # of what is timed, of which the best counts
TRITON_FAILED = "Triton failed: is it installed? pip install '.[bench]'"
GROUP = 4  # rows of tiles that are gone through together


@dataclass(frozen=True)
class Kernel:
    """A kernel of Triton's that was compiled for a case, with one of its settings."""

    case: Case
    path: Path
    lds_bytes: int
    waves: int

    @property
    def setting(self) -> str:
        return self.path.stem.removeprefix(f"{self.case}-")

    @property
    def tile(self) -> tuple[int, int]:
        rows, columns = self.setting.split("-")[0].split("x")[:2]
        return int(rows), int(columns)

    def profile(self, shape: Shape) -> Profile:
        """A whole product, in the order that keeps neighbours on one die."""
        m, n, k = shape
        groups = -(-m // self.tile[0]) * -(-n // self.tile[1])
        dies = product_of(self.case.arch).dies
        order = dies if groups % dies == 0 else 1, GROUP
        integers = [m, n, k, k, k if self.case.order == "bt" else n, n, *order]
        return mfmadsl.profile(
            self.path.read_text(),
            [*self.case.arrays(*shape), *map(np.int32, integers), None, None],
            (groups,),
            (64 * self.waves,),
            lds_bytes=self.lds_bytes,
        )

    def seconds(self, shape: Shape) -> float:
        """What it takes on the chip."""
        return float(self.profile(shape).on_chip.seconds)


def compile_all(folder: Path, of: Iterable[Case]) -> None:
    """All settings of these cases, in processes of their own, for Triton brings an LLVM that TVM's
    must not meet."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [str(case) for case in of]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    processes = [
        subprocess.Popen([*PROGRAM, str(folder), *names[worker::WORKERS]], cwd=ROOT,
                         env=environment, stderr=subprocess.DEVNULL)
        for worker in range(WORKERS)
    ]  # fmt: skip
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit(TRITON_FAILED)


def seconds_to_compile(kernel: Kernel) -> float:
    """What Triton takes for one, when nothing of it is cached."""
    command = [*PROGRAM, "--time", str(kernel.case), kernel.setting, str(RUNS)]
    return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def kernels(case: Case, folder: Path) -> list[Kernel]:
    """Those that Triton compiled, and that the chip has enough LDS for."""
    found = []
    for path in sorted(folder.glob(f"{case}-*.s")):
        facts = json.loads(path.with_suffix(".json").read_text())
        if facts["lds_bytes"] <= ARCHITECTURES[case.arch].lds_bytes:
            found.append(Kernel(case, path, facts["lds_bytes"], facts["waves"]))
    return found


def fastest(case: Case, folder: Path, pool: Executor) -> dict[Shape, Kernel]:
    """Its best for each shape.

    All settings are tried with the least K, and those that are the best there with all of K.
    """
    every = kernels(case, folder)
    large = [kernel for kernel in every if kernel.tile[0] > LOW[0]]
    low = [kernel for kernel in every if kernel.tile[0] == LOW[0]]
    finalists = _best(large, LARGE[0], pool)
    found = {shape: _best(finalists, shape, pool)[0] for shape in LARGE}
    trial = (*LOW[:2], LOW[2] // 4)
    return found | {LOW: _best(_best(low, trial, pool), LOW, pool)[0]}


def _best(of: Sequence[Kernel], shape: Shape, pool: Executor) -> list[Kernel]:
    seconds: Iterable[float] = pool.map(partial(Kernel.seconds, shape=shape), of)
    ranked = sorted(zip(seconds, of, strict=True), key=lambda pair: pair[0])
    return [kernel for _, kernel in ranked[:FINALISTS]]
