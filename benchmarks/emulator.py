"""How fast the emulator is, alone and with the sanitizer and the profiler.

    python benchmarks/emulator.py

Every row runs in a fresh process, whose peak of memory is its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

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
CASES = [
    ("a single tile", 128, 128, 128, "emulate"),
    ("1024x1024x1024", 1024, 1024, 1024, "emulate"),
    ("4096x4096x64", 4096, 4096, 64, "emulate"),
    ("a single tile, sanitized", 128, 128, 128, "sanitize"),
    ("1024x1024x1024, sanitized", 1024, 1024, 1024, "sanitize"),
    ("1024x1024x1024, profiled", 1024, 1024, 1024, "profile"),
]
RUNS = 3


def main() -> None:
    """Print the table."""
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


if __name__ == "__main__":
    main()
