"""Products of rows sorted by expert beside dense products of as many rows, modelled.

    python -m benchmarks.gemm.experts

The shapes are the projections of a Mixtral 8x7B, a Qwen3-235B-A22B, and a DeepSeek-V3 on eight
GPUs, in f16. Rows are dealt out evenly, or one expert has half of them. "HBM" is the share of the
memory's reachable rate of the even one. A row of zeros is as slow as another, so all are. It takes
five minutes. Behind it come weights of few bits, in two minutes: microseconds of even rows, and how
often the time in which memory brings all bytes at 81 % of its peak.
"""

from __future__ import annotations

import click
import numpy as np
import numpy.typing as npt

import mfmadsl
from benchmarks.gemm.weights import arrays_of, bound_of

CHIPS = "gfx942", "gfx950"
SHAPES = (
    (8192, 14336, 4096, 8),
    (32768, 1536, 4096, 128),
    (65536, 512, 7168, 256),
)
SMALL = 8, 14336, 4096
"""Experts, N and K of products of weights of few bits."""

FORMATS = ("gptq", "float16"), ("gptq", "bfloat16"), ("mxfp4", "float16"), ("mxfp4", "bfloat16")


def even(rows: int, experts: int) -> npt.NDArray[np.int32]:
    """The ends of experts that have as many rows each."""
    return np.cumsum(np.full(experts, rows // experts)).astype("int32")


def half(rows: int, experts: int) -> npt.NDArray[np.int32]:
    """The ends of experts of which one has half of the rows, and the others have as many each."""
    counts = np.full(experts, rows // 2 // (experts - 1))
    counts[experts // 3] = rows // 2
    return np.cumsum(counts).astype("int32")


def row(arch: str, shape: tuple[int, int, int, int]) -> str:
    """One line of the table."""
    m, n, k, experts = shape
    a, c = np.zeros((m, k), "float16"), np.zeros((m, n), "float32")
    workload = mfmadsl.matmul(m, n, k, "float16", "float32", b_transposed=True)
    dense = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    whole = mfmadsl.profile(dense, [a, np.zeros((n, k), "float16"), c]).on_chip
    workload = mfmadsl.grouped_matmul(m, n, k, experts, "float16", "float32")
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    b = np.zeros((experts, n, k), "float16")
    first, second = (
        mfmadsl.profile(kernel, [a, ends(m, experts), b, c]).on_chip for ends in (even, half)
    )
    cells = [
        arch, str(experts), f"{m} x {n} x {k}", f"{whole.seconds * 1e6:.0f}",
        *(f"{time.seconds / whole.seconds:.2f}" for time in (first, second)),
        f"{first.shares['HBM']:.0%}",
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
    print("| modelled | experts | rows x N x K | dense, us | even | half | HBM |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for chip in arch:
        for shape in SHAPES:
            print(row(chip, shape), flush=True)
    names = " | ".join(name if dtype == "float16" else f"{name}, bf16" for name, dtype in FORMATS)
    print(f"\n| modelled | rows | f16 | {names} |")
    print("| --- " * (3 + len(FORMATS)) + "|")
    for chip in arch:
        for rows in (16, 128, 2048):
            print(small_weights(chip, rows), flush=True)


if __name__ == "__main__":
    main()
