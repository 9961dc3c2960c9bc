"""GEMMs of a sparse A beside dense ones of the same extents, on the chip models.

    python -m benchmarks.gemm.sparse [--size N]

Operations count the zeros, as data sheets do. It takes about five minutes.
"""

from __future__ import annotations

from typing import Any

import click
import ml_dtypes
import numpy as np
import numpy.typing as npt

import mfmadsl
from mfmadsl.emulator.profiler.chip import ChipTime
from mfmadsl.model import product_of

TYPES = {
    "gfx942": ("float16", "int8", "float8_e4m3fnuz"),
    "gfx950": ("float16", "int8", "float8_e4m3fn"),
}


def numbers(generator: np.random.Generator, size: int, dtype: str) -> npt.NDArray[Any]:
    found = generator.integers(-9, 10, (size, size)).astype(np.float32)
    return found.astype(getattr(ml_dtypes, dtype, dtype))


def time_of(workload: Any, arrays: list[npt.NDArray[Any]], arch: str) -> ChipTime:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch)
    assert kernel.registers.spilled == 0
    return mfmadsl.profile(kernel, arrays).on_chip


def row(arch: str, dtype: str, size: int) -> str:
    """Dense, and sparse with its index by rows and by words."""
    generator = np.random.default_rng(0)
    a, b = (numbers(generator, size, dtype) for _ in range(2))
    sums = "int32" if dtype == "int8" else "float32"
    c = np.zeros((size, size), sums)
    plain = mfmadsl.matmul(size, size, size, dtype, sums, b_transposed=True)
    dense = time_of(plain, [a, b, c], arch)
    kept = mfmadsl.compress(a)
    cells = [product_of(arch).name, dtype, f"{dense.seconds * 1e6:.0f}"]
    for order, index in (("rows", kept.packed), ("words", kept.words)):
        workload = mfmadsl.sparse_matmul(
            size, size, size, dtype, b_transposed=True, index_order=order
        )
        found = time_of(workload, [kept.values, index, b, c], arch)
        cells += [f"{found.seconds * 1e6:.0f}", found.limit, f"{dense.seconds / found.seconds:.2f}"]
    return f"| {' | '.join(cells)} |"


@click.command()
@click.option("--size", type=click.IntRange(256), default=4096)
def main(size: int) -> None:
    print("| modelled | type | dense, us | by rows | limit | speed | by words | limit | speed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for arch, types in TYPES.items():
        for dtype in types:
            print(row(arch, dtype, size), flush=True)


if __name__ == "__main__":
    main()
