"""Products of few rows with weights of four and eight bits, beside what memory takes, modelled.

    python -m benchmarks.gemm.weights

`bound` is the time in which memory brings all bytes at 81 % of its peak.
A cell has microseconds, and how often the bound they are. It takes about four minutes.
"""

from __future__ import annotations

import click
import numpy as np
from tvm.tirx import PrimFunc

import mfmadsl
from benchmarks.gemm.sparse import time_of
from mfmadsl.model import product_of
from mfmadsl.model.numpy_type import numpy_type

CHIPS = "gfx942", "gfx950"
SHAPES = (
    (1, 14336, 4096),
    (16, 14336, 4096),
    (1, 4096, 4096),
    (16, 4096, 14336),
    (4096, 4096, 4096),
)
WEIGHTS = (
    ("q4f16", "float16", 128),
    ("gptq", "float16", None),
    ("gptq", "bfloat16", None),
    ("awq", "float16", None),
    ("mxfp4", "float16", None),
    ("mxfp4", "bfloat16", None),
    ("int8", "float16", None),
)


def bound_of(workload: PrimFunc, arch: str) -> float:
    """The seconds in which memory brings all arguments."""
    product = product_of(arch)
    moved = sum(array.nbytes for array in arrays_of(workload))
    return moved / (product.memory_share * product.memory_bandwidth * 1e9)


def arrays_of(workload: PrimFunc) -> list[np.ndarray]:
    """Arguments; a kernel takes as long for any numbers."""
    return [np.ones([int(e) for e in p.shape], numpy_type(str(p.dtype))) for p in workload.params]


def row(arch: str, shape: tuple[int, int, int]) -> str:
    """One line of the table: each cell has the time, in us, and how often the bound that is."""
    halves = mfmadsl.matmul(*shape, "float16", "float32", b_transposed=True)
    whole = time_of(halves, arrays_of(halves), arch).seconds
    cells = [product_of(arch).name, " x ".join(map(str, shape)), f"{whole * 1e6:.1f}"]
    for weights, dtype, group in WEIGHTS:
        workload = mfmadsl.quantised_matmul(*shape, weights, dtype, group=group)
        seconds = time_of(workload, arrays_of(workload), arch).seconds
        cells.append(f"{seconds * 1e6:.1f} ({seconds / bound_of(workload, arch):.2f})")
    return f"| {' | '.join(cells)} |"


@click.command()
def main() -> None:
    """Print the table."""
    names = [name if dtype == "float16" else f"{name}, bf16" for name, dtype, _ in WEIGHTS]
    print(f"| modelled | M x N x K | f16 | {' | '.join(names)} |")
    print("| --- " * (3 + len(names)) + "|")
    for arch in CHIPS:
        for shape in SHAPES:
            print(row(arch, shape), flush=True)


if __name__ == "__main__":
    main()
