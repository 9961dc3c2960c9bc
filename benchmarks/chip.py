"""The model of a whole chip beside what was measured on chips: the tables of docs/chip.md.

    python -m benchmarks.chip [--kernels FOLDER]

HipKittens' authors measured Triton's matmul and the hit rates of caches on an MI355X (arXiv
2511.08083). Triton compiles its settings here (a few minutes, kept in FOLDER); of those of tiles of
256 x 256 the one that the model finds the fastest at 4096 cubed counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np

import mfmadsl
from mfmadsl.model import ARCHITECTURES
from tests.emulator.profiler.test_sharing import LARGE, SMALL, by_dies, by_rows, hits, of_tiles

ROOT = Path(__file__).parent.parent
CASE, ARCH = "gfx950.bf16.bt", "gfx950"
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


def tflops(path: Path, size: int) -> float:
    """What a kernel of Triton's does of a cube, in the model."""
    facts = json.loads(path.with_suffix(".json").read_text())
    operand = np.ones((size, size), ml_dtypes.bfloat16)
    integers = [np.int32(size)] * 6 + [np.int32(1)] * 2  # tile after tile, row by row
    found = mfmadsl.profile(
        path.read_text(),
        [operand, operand, np.zeros((size, size), np.float32), *integers, None, None],
        ((size // 256) ** 2,),
        (64 * facts["waves"],),
        lds_bytes=facts["lds_bytes"],
    )
    return 2 * size**3 / found.on_chip.seconds / 1e12


def triton(folder: Path) -> Iterator[str]:
    paths = [
        path
        for path in sorted(folder.glob(f"{CASE}-256x256*.s"))
        if json.loads(path.with_suffix(".json").read_text())["lds_bytes"]
        <= ARCHITECTURES[ARCH].lds_bytes
    ]
    best = max(paths, key=lambda path: tflops(path, 4096))
    yield f"Triton, {best.stem.removeprefix(f'{CASE}-')}:"
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
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kernels", type=Path, default=ROOT / "build" / "triton")
    folder = parser.parse_args().kernels
    folder.mkdir(parents=True, exist_ok=True)
    # In a process of its own, for Triton brings an LLVM that TVM's must not meet.
    program = [sys.executable, "-m", "benchmarks.gemm.triton_kernels", str(folder), CASE]
    subprocess.run(program, cwd=ROOT, check=True)
    for line in (*triton(folder), "", *rates()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
