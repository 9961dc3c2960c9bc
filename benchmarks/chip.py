"""The model of a whole chip beside what was measured on chips: the tables of docs/chip.md.

    python -m benchmarks.chip [--kernels FOLDER]

HipKittens' authors measured Triton's matmul and the hit rates of caches on an MI355X (arXiv
2511.08083). Triton compiles its settings here (a few minutes, kept in FOLDER); of those of tiles of
256 x 256 the one that the model finds the fastest at 4096 cubed counts.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.call import command
from benchmarks.gemm.case import Case
from benchmarks.gemm.peer import ROOT, TRITON_FAILED, Kernel, kernels
from tests.emulator.profiler.tile_orders import LARGE, SMALL, by_dies, by_rows, hits, of_tiles

CASE = Case("gfx950", "bf16", "bt")
TRITON = {4096: 994, 8192: 1144}
"""TFLOP/s of bfloat16 that were measured, by M = N = K."""

RATES = [
    ("14592, by rows", by_rows(57), LARGE, (0.36, 0.76)),
    ("14592, window 8, chunk 542", by_dies(76 * 57, 57, 8, 541), LARGE, (0.79, 0.07)),
    ("14592, window 8, chunk 64", by_dies(76 * 57, 57, 8, 64), LARGE, (0.78, 0.55)),
    ("9216, by rows", by_rows(36), SMALL, (0.55, 0.95)),
    ("9216, window 7, chunk 216", by_dies(48 * 36, 36, 7, 216), SMALL, (0.79, 0.24)),
    ("9216, window 5, chunk 25", by_dies(48 * 36, 36, 5, 25), SMALL, (0.75, 0.93)),
]


def tflops(kernel: Kernel, size: int) -> float:
    """What a kernel of Triton's does of a cube, in the model."""
    return 2 * size**3 / kernel.seconds((size, size, size)) / 1e12


def triton(folder: Path) -> Iterator[str]:
    large = [kernel for kernel in kernels(CASE, folder) if kernel.tile == (256, 256)]
    best = max(large, key=lambda kernel: tflops(kernel, 4096))
    yield f"Triton, {best.setting}:"
    yield ""
    yield "| M = N = K | measured, TFLOP/s | model | off by |"
    yield "| --- | --- | --- | --- |"
    for size, measured in TRITON.items():
        found = tflops(best, size)
        yield f"| {size} | {measured} | {found:.0f} | {found / measured - 1:+.0%} |"


def rates() -> Iterator[str]:
    yield "| M = N = K, order | L2, measured | model | behind it, measured | model |"
    yield "| --- | --- | --- | --- | --- |"
    for name, order, tiles, (l2, behind) in RATES:
        own = hits(of_tiles(order, *tiles, 256))
        yield f"| {name} | {l2:.0%} | {own[0]:.0%} | {behind:.0%} | {own[1]:.0%} |"


def main() -> None:
    """Print the tables."""
    parser = command(__doc__)
    parser.add_argument("--kernels", type=Path, default=ROOT / "build" / "triton")
    folder = parser.parse_args().kernels
    folder.mkdir(parents=True, exist_ok=True)
    # In a process of its own, for Triton brings an LLVM that TVM's must not meet.
    program = [sys.executable, "-m", "benchmarks.gemm.triton_kernels", str(folder), str(CASE)]
    if subprocess.run(program, cwd=ROOT, check=False).returncode:
        raise SystemExit(TRITON_FAILED)
    for line in (*triton(folder), "", *rates()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
