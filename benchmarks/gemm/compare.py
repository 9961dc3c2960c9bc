"""Our GEMM kernels beside Triton's best, for every type and order of B: `make bench`.

    python -m benchmarks.gemm.compare [--kernels FOLDER] [--output FILE]

Triton compiles every setting of `triton_kernels.settings` for each case; its best counts: on gfx942
by llvm-mca, on gfx950, which llvm-mca does not know, the fewest instructions without a spill. Needs
`llvm-mca-19` (Debian's package llvm-19) and takes about an hour on two cores, most of it Triton's;
what is in FOLDER already is taken from there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import mfmadsl
from benchmarks.gemm.loop import Loop, measure
from mfmadsl.backend import build
from mfmadsl.model import ARCHITECTURES
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import gemm_schedule

CHIPS, TYPES, ORDERS = ("gfx942", "gfx950"), ("f16", "bf16", "i8", "fp8"), ("bt", "kn")
ORDER_NAMES = {"bt": "B transposed", "kn": "B as K x N"}
SIZES = {"gfx942": (4096, 4864, 4096), "gfx950": (4096, 4096, 4096)}
"""Products of which tiles of 256x256, that Triton has, too, fill a chip."""
WORKERS = os.cpu_count() or 1
ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Entry:
    """A kernel's figures; `conflicts` are LDS cycles of the main loop beyond the least possible."""

    setting: str
    loop: Loop
    lds_bytes: int
    conflicts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    arch: str
    kind: str
    order: str

    def __str__(self) -> str:
        return f"{self.arch}.{self.kind}.{self.order}"

    @property
    def dtype(self) -> str:
        fp8 = "float8_e4m3fnuz" if self.arch == "gfx942" else "float8_e4m3fn"
        return {"f16": "float16", "bf16": "bfloat16", "i8": "int8", "fp8": fp8}[self.kind]

    @property
    def output(self) -> str:
        return "int32" if self.kind == "i8" else "float32"

    @property
    def per_cycle(self) -> int:
        """Multiply-adds of a gfx942 matrix core in a cycle of llvm-mca."""
        return 2048 if self.kind in ("i8", "fp8") else 1024

    def workload(self, m: int, n: int, k: int) -> Any:
        return mfmadsl.matmul(m, n, k, self.dtype, self.output, self.order == "bt")

    def arrays(self, m: int, n: int, k: int) -> list[Any]:
        dtype = numpy_type(self.dtype)
        b = (n, k) if self.order == "bt" else (k, n)
        return [np.ones((m, k), dtype), np.ones(b, dtype), np.zeros((m, n), self.output)]


def cases() -> Iterator[Case]:
    for arch in CHIPS:
        for kind in TYPES:
            for order in ORDERS:
                yield Case(arch, kind, order)


def ours(case: Case) -> Entry:
    """The kernel that `gemm_schedule` makes of a large product, nothing chosen by hand."""
    workload = case.workload(*SIZES[case.arch])
    start = time.perf_counter()
    kernel = build(gemm_schedule(workload, arch=case.arch), case.arch)
    seconds = time.perf_counter() - start
    tiling = mfmadsl.gemm_tiling(workload, arch=case.arch)
    small = (*tiling.block, 6 * tiling.k_step)
    tile = gemm_schedule(case.workload(*small), arch=case.arch, tiling=tiling)
    profile = mfmadsl.profile(build(tile, case.arch), case.arrays(*small))
    conflicts = profile.loop.lds_conflict_cycles if profile.loop else 0
    name = (
        f"{tiling.block[0]}x{tiling.block[1]}x{tiling.k_step}, "
        f"{tiling.wave_count} waves, {tiling.instruction.removeprefix('mfma_')}"
    )
    loop = measure(kernel.assembly, case.arch)
    return Entry(name, loop, kernel.lds_bytes, conflicts, seconds)


def compile_triton(folder: Path) -> None:
    """In processes of their own, for Triton brings an LLVM that TVM's must not meet."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [str(case) for case in cases()]
    command = [sys.executable, "-m", "benchmarks.gemm.triton_kernels", str(folder)]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    processes = [
        subprocess.Popen([*command, *names[worker::WORKERS]], cwd=ROOT, env=environment,
                         stderr=subprocess.DEVNULL)
        for worker in range(WORKERS)
    ]  # fmt: skip
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit("Triton failed: is it installed? pip install '.[test]'")


def triton(case: Case, folder: Path) -> Entry:
    """Its best of all settings that fit the chip."""
    found = []
    paths = sorted(folder.glob(f"{case}-*.s"))
    facts = {path: json.loads(path.with_suffix(".json").read_text()) for path in paths}
    limit = ARCHITECTURES[case.arch].lds_bytes
    paths = [path for path in paths if facts[path]["lds_bytes"] <= limit]
    with ThreadPoolExecutor(WORKERS) as pool:  # llvm-mca's processes do the work
        loops = pool.map(lambda path: measure(path.read_text(), case.arch), paths)
        for path, loop in zip(paths, loops, strict=True):
            setting = path.stem.removeprefix(f"{case}-")
            found.append((path, Entry(setting, loop, facts[path]["lds_bytes"])))
    if case.arch == "gfx950":
        found = [(path, entry) for path, entry in found if not entry.loop.spilled]
        path, best = min(found, key=lambda item: item[1].loop.per_unit)
    else:
        path, best = max(found, key=lambda item: item[1].loop.efficiency(case.per_cycle))
    rows, columns = (int(x) for x in best.setting.split("-")[0].split("x")[:2])
    size = 1 if case.kind in ("i8", "fp8") else 2
    k = 1024 // size
    arrays = case.arrays(rows, columns, k)
    integers = [rows, columns, k, k, k if case.order == "bt" else columns, columns]
    profile = mfmadsl.profile(
        path.read_text(), [*arrays, *map(np.int32, integers), None, None], (1,),
        (64 * facts[path]["waves"],), lds_bytes=best.lds_bytes,
    )  # fmt: skip
    return replace(best, conflicts=profile.loop.lds_conflict_cycles if profile.loop else 0)


def rows_of(case: Case, own: Entry, peer: Entry) -> list[str]:
    rows = []
    for name, entry in (("ours", own), ("Triton", peer)):
        loop = entry.loop
        efficiency = f"{loop.efficiency(case.per_cycle):.3f}" if loop.cycles else ""
        cycles = f"{loop.cycles:.0f}" if loop.cycles else ""
        bound = f"{loop.work / case.per_cycle:.0f}" if loop.cycles else ""
        rows.append(
            f"| {case.arch} {case.kind}, {ORDER_NAMES[case.order]} | {name} | {entry.setting} "
            f"| {loop.per_unit:.2f} | {loop.registers} | {loop.spilled} | {entry.lds_bytes} "
            f"| {entry.conflicts} | {cycles} | {bound} | {efficiency} |"
        )
    return rows


def summary(measured: Sequence[tuple[Case, Entry, Entry]]) -> list[str]:
    """The ratios that the table comes to."""
    ratios = [
        own.loop.efficiency(case.per_cycle) / peer.loop.efficiency(case.per_cycle)
        for case, own, peer in measured
        if case.arch == "gfx942"
    ]
    fewer = [
        own.loop.per_unit / peer.loop.per_unit
        for case, own, peer in measured
        if case.arch == "gfx950"
    ]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    fewer_mean = math.exp(sum(map(math.log, fewer)) / len(fewer))
    slowest = max(own.seconds for _, own, _ in measured)
    return [
        f"On gfx942, bound / cycles of ours over Triton's best: geometric mean {mean:.3f}, least "
        f"{min(ratios):.3f}.",
        f"On gfx950, instructions of ours over Triton's best: geometric mean {fewer_mean:.3f}, "
        f"most {max(fewer):.3f}.",
        f"Building one of ours for 4096 x 4096 and more: at most {slowest:.1f} s.",
    ]


def main() -> None:
    """Measure, print the table, and write it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kernels", type=Path, default=ROOT / "build" / "triton")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "gemm-benchmark.md")
    options = parser.parse_args()
    compile_triton(options.kernels)
    measured = [(case, ours(case), triton(case, options.kernels)) for case in cases()]
    lines = [
        "# The GEMM beside Triton's",
        "",
        "Made by `make bench` (`python -m benchmarks.gemm.compare`), on a machine without a GPU.",
        "What the columns mean, and what they do not say, stands in [the GEMM](gemm.md).",
        "",
        "| case | kernel | setting | instructions / 65536 multiply-adds | registers | spilled "
        "| LDS bytes | LDS conflict cycles | cycles | bound | bound / cycles |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *[row for entry in measured for row in rows_of(*entry)],
        "",
        *summary(measured),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
