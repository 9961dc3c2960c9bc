"""Products whose C is quantised to an MX format beside those in float32, on the chip models.

    python -m benchmarks.gemm.mx_output

Scales of scaled operands lie by words. It takes about three minutes.
"""

from __future__ import annotations

from typing import Any

import click
import ml_dtypes
import numpy as np
import numpy.typing as npt
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.model import product_of

SHAPES = ((4096, 4096, 4096), (64, 4096, 4096))
OPERANDS = {"gfx942": ("bfloat16",), "gfx950": ("bfloat16", "fp8", "fp4")}
Arrays = list[npt.NDArray[Any]]


def product(shape: tuple[int, int, int], operands: str) -> tuple[PrimFunc, Arrays]:
    """The workload with C in float32, and its arguments but for C."""
    m, n, k = shape
    if operands == "bfloat16":
        workload = mfmadsl.matmul(m, n, k, operands, "float32", b_transposed=True)
        return workload, [np.zeros((rows, k), ml_dtypes.bfloat16) for rows in (m, n)]
    row = k if operands == "fp8" else k // 2
    elements = [np.zeros((rows, row), np.uint8) for rows in (m, n)]
    scales = [np.full((k // 128, rows, 4), 127, np.uint8) for rows in (m, n)]
    return mfmadsl.scaled_matmul(m, n, k, operands, scale_order="words"), [*elements, *scales]


def microseconds(workload: PrimFunc, arrays: Arrays, arch: str) -> float:
    """Of the default kernel; the largest spill a few registers, ahead of the main loop."""
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch)
    return mfmadsl.profile(kernel, arrays).on_chip.seconds * 1e6


def row(arch: str, operands: str, shape: tuple[int, int, int]) -> str:
    """C in float32, and in two MX formats."""
    m, n, _ = shape
    plain, given = product(shape, operands)
    of_groups = np.zeros((m, n // 32), np.uint8)
    results: list[tuple[PrimFunc, Arrays]] = [
        (plain, [np.zeros((m, n), np.float32)]),
        (mfmadsl.mx_output(plain, "fp8"), [np.zeros((m, n), ml_dtypes.float8_e4m3fn), of_groups]),
        (mfmadsl.mx_output(plain, "fp4"), [np.zeros((m, n // 2), np.uint8), of_groups]),
    ]
    times = [microseconds(workload, [*given, *c], arch) for workload, c in results]
    cells = [product_of(arch).name, operands, " x ".join(map(str, shape))]
    return f"| {' | '.join([*cells, *(f'{each:.1f}' for each in times)])} |"


@click.command()
def main() -> None:
    """Print the table."""
    print("| modelled | A and B | M x N x K | C in float32, us | MXFP8, us | MXFP4, us |")
    print("| --- | --- | --- | --- | --- | --- |")
    for arch, several in OPERANDS.items():
        for operands in several:
            for shape in SHAPES:
                print(row(arch, operands, shape), flush=True)


if __name__ == "__main__":
    main()
