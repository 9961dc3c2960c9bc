"""Products of rows sorted by expert beside dense products of as many rows, modelled.

    python -m benchmarks.gemm.experts

The shapes are the projections of a Mixtral 8x7B, a Qwen3-235B-A22B, and a DeepSeek-V3 on eight
GPUs, in f16, fp8, and fp8 with scales of blocks as DeepSeek has them, beside a dense product of the
same kind. Rows are dealt out evenly, or one expert has half of them. "HBM" is the share of the
memory's reachable rate of the even one. No kernel takes less than "bound": the weights of all
experts are more bytes than a dense product reads. A row of zeros is as slow as another, so all are.
It takes 20 minutes. Behind it come weights of few bits, in two minutes: microseconds of even rows,
and how often the time in which memory brings all bytes at 81 % of its peak.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import click
import ml_dtypes
import numpy as np
import numpy.typing as npt
from tvm import tirx

import mfmadsl
from benchmarks.gemm.weights import arrays_of, bound_of
from mfmadsl.model import product_of
from mfmadsl.model.numpy_type import numpy_type

CHIPS = "gfx942", "gfx950"
SHAPES = (
    (8192, 14336, 4096, 8),
    (32768, 1536, 4096, 128),
    (65536, 512, 7168, 256),
)
SMALL = 8, 14336, 4096
"""Experts, N and K of products of weights of few bits."""

KINDS = "f16", "fp8", "blocks"
"""What is multiplied: numbers of a type, or fp8 with scales of 1 x 128 and 128 x 128 blocks."""

FP8 = {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}

FORMATS = ("gptq", "float16"), ("gptq", "bfloat16"), ("mxfp4", "float16"), ("mxfp4", "bfloat16")


def even(rows: int, experts: int) -> npt.NDArray[np.int32]:
    """The ends of experts that have as many rows each."""
    return np.cumsum(np.full(experts, rows // experts)).astype("int32")


def half(rows: int, experts: int) -> npt.NDArray[np.int32]:
    """The ends of experts of which one has half of the rows, and the others have as many each."""
    counts = np.full(experts, rows // 2 // (experts - 1))
    counts[experts // 3] = rows // 2
    return np.cumsum(counts).astype("int32")


def workloads(
    kind: str, dtype: str, shape: tuple[int, int, int, int]
) -> tuple[tirx.PrimFunc, tirx.PrimFunc]:
    """(the dense product, that of experts) of a kind and a type."""
    m, n, k, experts = shape
    if kind == "blocks":
        dense = mfmadsl.block_scaled_matmul(m, n, k, dtype)
        return dense, mfmadsl.block_scaled_matmul(m, n, k, dtype, experts=experts)
    dense = mfmadsl.matmul(m, n, k, dtype, "float32", b_transposed=True)
    return dense, mfmadsl.grouped_matmul(m, n, k, experts, dtype, "float32")


def zeros(workload: tirx.PrimFunc, ends: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[Any]]:
    """Its arguments."""
    for each in workload.params:
        dtype = np.dtype(getattr(ml_dtypes, str(each.dtype), str(each.dtype)))
        yield ends if each.name == "ENDS" else np.zeros([int(x) for x in each.shape], dtype)


def least(workload: tirx.PrimFunc, arch: str, dense: float) -> float:
    """How often the seconds of a `dense` product one of experts takes at least: as many useful
    multiplications at the same rate, or all arguments once at the memory's reachable rate."""
    moved = sum(
        math.prod(int(x) for x in each.shape) * numpy_type(str(each.dtype)).itemsize
        for each in workload.params
    )
    return max(1.0, moved / (product_of(arch).reached_bandwidth * 1e9) / dense)


def row(arch: str, kind: str, shape: tuple[int, int, int, int]) -> str:
    """One line of the table."""
    m, n, k, experts = shape
    dense, grouped = workloads(kind, "float16" if kind == "f16" else FP8[arch], shape)
    times = []
    for workload, several in ((dense, (even,)), (grouped, (even, half))):
        kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
        for ends in several:
            times.append(mfmadsl.profile(kernel, [*zeros(workload, ends(m, experts))]).on_chip)
    whole, first, second = times
    bound = least(grouped, arch, whole.seconds)
    cells = [
        arch, kind, str(experts), f"{m} x {n} x {k}", f"{whole.seconds * 1e6:.0f}",
        *(f"{time.seconds / whole.seconds:.2f}" for time in (first, second)),
        f"{bound:.2f}", f"{first.shares['HBM']:.0%}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def small_weights(arch: str, rows: int) -> str:
    """One line of the table of weights of few bits."""
    experts, n, k = SMALL
    products = [
        mfmadsl.grouped_matmul(rows, n, k, experts, "float16", "float32"),
        *(mfmadsl.quantised_matmul(rows, n, k, *each, experts=experts) for each in FORMATS),
    ]
    cells = [arch, str(rows)]
    for workload in products:
        kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
        arguments = arrays_of(workload)
        arguments[1] = even(rows, experts)
        seconds = mfmadsl.profile(kernel, arguments).on_chip.seconds
        cells.append(f"{seconds * 1e6:.0f} ({seconds / bound_of(workload, arch):.2f})")
    return f"| {' | '.join(cells)} |"


@click.command()
@click.option("--arch", multiple=True, default=CHIPS, help="a chip")
def main(arch: tuple[str, ...]) -> None:
    """Print the tables."""
    print(
        "| modelled | elements | experts | rows x N x K | dense, us | even | half | bound | HBM |"
    )
    print("| --- " * 9 + "|")
    for chip in arch:
        for kind in KINDS:
            for shape in SHAPES:
                print(row(chip, kind, shape), flush=True)
    kinds = " | ".join(name if dtype == "float16" else f"{name}, bf16" for name, dtype in FORMATS)
    print(f"\n| modelled | rows | f16 | {kinds} |")
    print("| --- " * (3 + len(FORMATS)) + "|")
    for chip in arch:
        for rows in (16, 128, 2048):
            print(small_weights(chip, rows), flush=True)


if __name__ == "__main__":
    main()
