"""fp8 with the scales of DeepSeek-V3's layers beside plain fp8, on the chip models.

    python -m benchmarks.gemm.block_scaled

Each 128 elements of a row of A and each 128 x 128 of B have a scale in float32; those of A lie by
rows, [m, k / 128], or by columns. It takes about two minutes.
"""

from __future__ import annotations

import click
import ml_dtypes
import numpy as np

import mfmadsl
from benchmarks.gemm.sparse import time_of
from mfmadsl.model import product_of

TYPES = {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}
SHAPES = (
    (4096, 4096, 4096),
    (4096, 7168, 2048),
    (4096, 2048, 7168),
    (1024, 4096, 7168),
    (64, 7168, 2048),
)
BLOCK = 128


def row(arch: str, shape: tuple[int, int, int]) -> str:
    """Plain, and scaled by rows and by columns."""
    m, n, k = shape
    kind = getattr(ml_dtypes, TYPES[arch])
    a, b, c = (np.zeros(each, dtype) for each, dtype in
               (((m, k), kind), ((n, k), kind), ((m, n), np.float32)))  # fmt: skip
    plain = mfmadsl.matmul(*shape, TYPES[arch], "float32", b_transposed=True)
    theirs = time_of(plain, [a, b, c], arch)
    cells = [product_of(arch).name, " x ".join(map(str, shape)), f"{theirs.seconds * 1e6:.1f}"]
    groups = -(-k // BLOCK)
    of_b = np.ones((-(-n // BLOCK), groups), np.float32)
    for order, size in (("rows", (m, groups)), ("columns", (groups, m))):
        workload = mfmadsl.block_scaled_matmul(*shape, TYPES[arch], scale_order=order)
        found = time_of(workload, [a, np.ones(size, np.float32), b, of_b, c], arch)
        cells += [f"{found.seconds * 1e6:.1f}", f"{theirs.seconds / found.seconds:.2f}"]
    return f"| {' | '.join(cells)} |"


@click.command()
def main() -> None:
    """Print the table."""
    print("| modelled | M x N x K | plain fp8, us | by rows, us | speed | by columns, us | speed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for arch in TYPES:
        for shape in SHAPES:
            print(row(arch, shape), flush=True)


if __name__ == "__main__":
    main()
