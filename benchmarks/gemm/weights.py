"""Products of few rows with weights of four and eight bits, beside what memory takes, modelled.

    python -m benchmarks.gemm.weights

Weights are N x K, four bits of them in words of 32 with a scale in float16 for each 128 along K, or
int8 with a scale for each row. `bound` is the time in which memory brings all bytes at 81 % of its
peak. It takes about two minutes.
"""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from tvm import te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from benchmarks.gemm.sparse import time_of
from mfmadsl.model import product_of

CHIPS = "gfx942", "gfx950"
SHAPES = (
    (1, 14336, 4096),
    (16, 14336, 4096),
    (1, 4096, 4096),
    (16, 4096, 14336),
    (4096, 4096, 4096),
)
GROUP = 128


def four_bits(m: int, n: int, k: int) -> PrimFunc:
    """C = A x W^T of q4f16: a nibble less 8, times the scale of its group."""
    q = te.placeholder((n, k // 8), "uint32", "Q")
    s = te.placeholder((n, k // GROUP), "float16", "S")

    def weight(j: Any, r: Any) -> Any:
        nibble = q[j, r // 8] >> (r % 8 * 4).astype("uint32") & tirx.const(15, "uint32")
        return (nibble.astype("float16") - tirx.const(8, "float16")) * s[j, r // GROUP]

    return _product((m, n, k), [q, s], weight)


def eight_bits(m: int, n: int, k: int) -> PrimFunc:
    """C = A x W^T of int8, times the scale of the row."""
    q = te.placeholder((n, k), "int8", "Q")
    s = te.placeholder((n,), "float16", "S")
    return _product((m, n, k), [q, s], lambda j, r: q[j, r].astype("float16") * s[j])


def halves(m: int, n: int, k: int) -> PrimFunc:
    """C = A x W^T of float16."""
    return mfmadsl.matmul(m, n, k, "float16", "float32", b_transposed=True)


def _product(shape: tuple[int, int, int], stored: list[Any], weight: Any) -> PrimFunc:
    m, n, k = shape
    a = te.placeholder((m, k), "float16", "A")
    w = te.compute((n, k), weight, "W")
    r = te.reduce_axis((0, k), "k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, r].astype("float32") * w[j, r].astype("float32"), axis=[r]),
        "C",
    )
    return te.create_prim_func([a, *stored, c])


WEIGHTS = {"float16": halves, "int8": eight_bits, "four bits": four_bits}


def row(arch: str, shape: tuple[int, int, int], kind: str) -> str:
    """One line of the table."""
    workload = WEIGHTS[kind](*shape)
    arrays = [np.ones([int(e) for e in p.shape], str(p.dtype)) for p in workload.params]
    found = time_of(workload, arrays, arch)
    moved = sum(each.nbytes for each in arrays)
    product = product_of(arch)
    bound = moved / (product.memory_share * product.memory_bandwidth * 1e9)
    cells = [
        product.name, " x ".join(map(str, shape)), kind, f"{found.seconds * 1e6:.1f}",
        found.limit, f"{bound * 1e6:.1f}", f"{found.seconds / bound:.2f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


@click.command()
def main() -> None:
    """Print the table."""
    print("| modelled | M x N x K | weights | us | limit | bound, us | times the bound |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for arch in CHIPS:
        for shape in SHAPES:
            for kind in WEIGHTS:
                print(row(arch, shape, kind), flush=True)


if __name__ == "__main__":
    main()
