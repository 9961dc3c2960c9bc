"""Do two models rank tiles alike? Our `tiling/cost.py` beside AMD's own, rocm-origami.

    python -m benchmarks.origami PROGRAM [--shapes 200]

PROGRAM ranks tiles by origami's `rank_configs`: it reads lines of a chip, a type, whether A and B
are transposed in BLAS's sense, M, N, K, batch and clock in GHz, then tiles of seven numbers (block,
instruction, occupancy), and writes for each line `#` and the tiles by their cycles.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from benchmarks.call import command, count
from mfmadsl.model import architecture, product_of
from mfmadsl.schedule.matrix_core.tiling.choice import candidates
from mfmadsl.schedule.matrix_core.tiling.cost import estimate
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.matrix_core.tiling.offered import offered
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead
from mfmadsl.schedule.matrix_core.tiling.resources import Loads

Key = tuple[int, int, int, int]  # rows, columns and depth of a tile, rows of the instruction
PARTS = (1, 2, 3, 4, 6, 8, 12, 16)


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each; that of equal ones is their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return [float(ends[i] - (counts[i] + 1) / 2) for i in inverse]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def ours(arch: str, m: int, n: int, k: int) -> dict[Key, tuple[float, str]]:
    """Seconds of each tile in as many parts of K as are fastest, and how the tile is written."""
    chip, product = architecture(arch), product_of(arch)
    loads, found = Loads(chip.wide_loads_to_lds), dict[Key, tuple[float, str]]()
    for intrinsic in candidates("float16", "float16", arch):
        gemm = GemmOnChip(
            m, n, k, 1, (MemoryRead(0, 2), MemoryRead(1, 2)), 2, intrinsic, chip, product, loads
        )
        for tiling in offered(intrinsic, chip, (2, 2), k, loads):
            steps = ceil(k / tiling.k_step)
            seconds = min(
                estimate(gemm, replace(tiling, split_k=parts)).seconds
                for parts in PARTS
                if parts <= max(1, steps // 2)
            )
            key = (*tiling.block, tiling.k_step, intrinsic.m)
            text = (
                f"{tiling.block[0]} {tiling.block[1]} {tiling.k_step} "
                f"{intrinsic.m} {intrinsic.n} {intrinsic.k} 1"
            )
            if key not in found or seconds < found[key][0]:
                found[key] = seconds, text
    return found


def main() -> None:
    """Print how alike they rank, chip by chip."""
    parser = command(__doc__)
    parser.add_argument("program", help="asks origami, as is told above")
    parser.add_argument("--shapes", type=count, default=200)
    options = parser.parse_args()
    print("| chip | shapes | Spearman, mean | median | our choice, by origami | its, by us |")
    print("| --- | --- | --- | --- | --- | --- |")
    for arch in ("gfx942", "gfx950"):
        drawn = random.Random(arch)
        sides = [[int(2 ** drawn.uniform(4, 13)) // 16 * 16 for _ in "mn"]
                 for _ in range(options.shapes)]  # fmt: skip
        # A tile that does not divide K costs origami 50,000 cycles.
        shapes = [(*side, int(2 ** drawn.uniform(8, 13.5)) // 256 * 256) for side in sides]
        tables = [ours(arch, *shape) for shape in shapes]
        lines = [
            f"{arch} f16 T N {m} {n} {k} 1 {product_of(arch).clock / 1000} "
            + " ".join(text for _, text in table.values())
            for (m, n, k), table in zip(shapes, tables, strict=True)
        ]
        try:
            done = subprocess.run(
                [options.program], input="\n".join(lines) + "\n", capture_output=True, text=True,
                check=True,
            )  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"{options.program}: {error}") from None
        answers = done.stdout.split("#\n")[1:]
        if len(answers) != len(tables):
            raise SystemExit(f"{options.program}: answered {len(answers)} of {len(tables)} shapes")
        alike, own_regret, their_regret = [], [], []
        for table, answer in zip(tables, answers, strict=True):
            theirs: dict[Key, float] = {}
            for line in answer.splitlines():
                rows, columns, depth, of_one, cycles, _ = (float(x) for x in line.split())
                key = (int(rows), int(columns), int(depth), int(of_one))
                if cycles < 1e15:
                    theirs[key] = min(theirs.get(key, np.inf), cycles)
            keys = [key for key in table if key in theirs]
            if len(keys) < 5:
                continue
            own, other = [table[key][0] for key in keys], [theirs[key] for key in keys]
            alike.append(spearman(own, other))
            own_regret.append(other[int(np.argmin(own))] / min(other))
            their_regret.append(own[int(np.argmin(other))] / min(own))
        means = [np.exp(np.mean(np.log(each))) for each in (own_regret, their_regret)]
        print(
            f"| {arch} | {len(alike)} | {np.mean(alike):.2f} | {np.median(alike):.2f} "
            f"| {means[0]:.2f} | {means[1]:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
