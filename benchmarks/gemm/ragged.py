"""Products whose extents are a little more than round numbers, beside round ones, modelled.

    python -m benchmarks.gemm.ragged

f16. A cell has, for an extent that is larger by 1, 2, 4 and 8, how many times as long it takes. It
takes about eight minutes.
"""

from __future__ import annotations

import click
import numpy as np

import mfmadsl
from benchmarks.gemm.case import ORDER_NAMES, Shape

CHIPS = "gfx942", "gfx950"
SHAPES: tuple[tuple[Shape, str], ...] = (
    ((2048, 4096, 4096), "bt"),
    ((2048, 4096, 4096), "kn"),
    ((16, 4096, 4096), "bt"),
    ((16, 4096, 4096), "kn"),
)
MORE = 1, 2, 4, 8


def seconds(arch: str, shape: Shape, order: str) -> float:
    """The modelled time of the default kernel."""
    m, n, k = shape
    transposed = order == "bt"
    workload = mfmadsl.matmul(*shape, "float16", "float32", b_transposed=transposed)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    b = np.ones((n, k) if transposed else (k, n), "float16")
    arrays = [np.ones((m, k), "float16"), b, np.zeros((m, n), "float32")]
    return mfmadsl.profile(kernel, arrays).on_chip.seconds


def row(arch: str, shape: Shape, order: str) -> str:
    """One line of the table."""
    whole = seconds(arch, shape, order)
    cells = [arch, " x ".join(map(str, shape)), ORDER_NAMES[order], f"{whole * 1e6:.1f}"]
    for axis in range(3):
        ratios = []
        for more in MORE:
            moved = [extent + more * (place == axis) for place, extent in enumerate(shape)]
            m, n, k = moved
            ratios.append(seconds(arch, (m, n, k), order) / whole)
        cells.append(" ".join(f"{ratio:.2f}" for ratio in ratios))
    return f"| {' | '.join(cells)} |"


@click.command()
@click.option("--arch", multiple=True, default=CHIPS, help="a chip")
def main(arch: tuple[str, ...]) -> None:
    """Print the table."""
    print("| modelled | M x N x K | B | us | M + 1, 2, 4, 8 | N + 1, 2, 4, 8 | K + 1, 2, 4, 8 |")
    print("| --- " * 7 + "|")
    for chip in arch:
        for shape, order in SHAPES:
            print(row(chip, shape, order), flush=True)


if __name__ == "__main__":
    main()
