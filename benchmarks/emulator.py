"""How fast the emulator is: alone, with the sanitizer and the profiler, and on all processors.

    python -m benchmarks.emulator

Every row of the first table runs in a fresh process, whose peak of memory is its own. Those of the
second launch a kernel again and again in one process, in turns on one thread and on all, and name
the fastest of each: the machine may have other work.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.native import CASES as KERNELS

RUN = """
import resource, time
from mfmadsl import Gemm, find
from mfmadsl.emulator import emulate
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.sanitizer import sanitize
gemm = Gemm(find("mfma_f32_16x16x16_f16"), "gfx942", {m}, {n}, {k}, shared_scope="shared")
kernel, args = gemm.build(), list(gemm.operands())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
{how}(kernel, args)
seconds = time.perf_counter() - start
groups = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(seconds, peak // 1024, groups)
"""
IN_TURNS = """
import os, pickle, sys, time
from types import SimpleNamespace
from mfmadsl.emulator import emulate
with open(sys.argv[1], "rb") as file:
    kept = pickle.load(file)
def once(threads):
    os.environ["MFMADSL_THREADS"] = str(threads)
    copies = [{**launch, "args": [each.copy() for each in launch["args"]]} for launch in kept]
    wall, cpu = time.perf_counter(), time.process_time()
    for launch in copies:
        emulate(SimpleNamespace(**launch), launch["args"])
    return time.perf_counter() - wall, time.process_time() - cpu
threads = int(sys.argv[2])
for _ in range(6):
    once(threads)
turns = [(once(1), once(threads)) for _ in range(int(sys.argv[3]))]
print(*(min(turn[who][what] for turn in turns) for who in range(2) for what in range(2)))
"""
CASES = [
    ("a single tile", 128, 128, 128, "emulate"),
    ("1024x1024x1024", 1024, 1024, 1024, "emulate"),
    ("4096x4096x64", 4096, 4096, 64, "emulate"),
    ("a single tile, sanitized", 128, 128, 128, "sanitize"),
    ("1024x1024x1024, sanitized", 1024, 1024, 1024, "sanitize"),
    ("1024x1024x1024, profiled", 1024, 1024, 1024, "profile"),
]
RUNS, TURNS = 3, 30


def _on_all_processors() -> None:
    """Print what launches take on one thread and on all."""
    threads = len(os.sched_getaffinity(0))
    print(f"| kernel | one thread, seconds | {threads} threads | times as fast | CPU time |")
    print("| --- | --- | --- | --- | --- |")
    for name, made in KERNELS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernel")
            path.write_bytes(pickle.dumps(made()))
            done = subprocess.run(
                [sys.executable, "-c", IN_TURNS, str(path), str(threads), str(TURNS)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
        one, cpu_of_one, all_, cpu_of_all = map(float, done.stdout.split())
        times, more = one / all_, cpu_of_all / cpu_of_one
        print(f"| {name} | {one:.3f} | {all_:.3f} | {times:.2f} | {more:.2f} |", flush=True)


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| f16 GEMM, tiles of 128x128 | workgroups | seconds | peak MiB |")
    print("| --- | --- | --- | --- |")
    for name, m, n, k, how in CASES:
        runs = []
        for _ in range(RUNS):
            program = RUN.format(m=m, n=n, k=k, how=how)
            done = subprocess.run(
                [sys.executable, "-c", program], check=True, capture_output=True, text=True
            )
            seconds, peak, groups = done.stdout.split()
            runs.append((float(seconds), int(peak), groups))
        seconds_of, peak_of, groups_of = sorted(runs)[RUNS // 2]
        print(f"| {name} | {groups_of} | {seconds_of:.2f} | {peak_of} |")
    print()
    _on_all_processors()


if __name__ == "__main__":
    main()
