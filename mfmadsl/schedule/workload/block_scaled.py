"""A product of small floats whose scales belong to blocks, as a TVM workload."""

from __future__ import annotations

from tvm import te
from tvm.tirx import Expr, PrimFunc

from mfmadsl.argument import check_choice, check_extent
from mfmadsl.schedule.product.block_scaled import FLOATS

_SUM = "float32"


def block_scaled_matmul(
    m: int, n: int, k: int, a_type: str, b_type: str | None = None, block: int = 128,
    scale_order: str = "rows", batch: int | None = None,
) -> PrimFunc:  # fmt: skip
    """C[m, n] = A[m, k] x B[n, k]^T of floats of eight bits, scaled in blocks, as DeepSeek-V3 has.

    The parameters are A, SCALE_A, B, SCALE_B and C. Each `block` neighbouring k of a row of A share
    a scale, and each `block` x `block` elements of B: SCALE_A is [m, k / block] in the
    `scale_order` "rows" and [k / block, m] in the order "columns", SCALE_B [n / block, k / block],
    both rounded up and float32, as C is. With `batch` there are so many matrices of each kind.

    Raises ArgumentError for an extent that is no positive number, and for other types and orders.
    """
    m, n, k = (check_extent(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    block = check_extent("block", block)
    b_type = a_type if b_type is None else b_type
    for name, dtype in (("a_type", a_type), ("b_type", b_type)):
        check_choice(name, dtype, sorted(FLOATS))
    check_choice("scale_order", scale_order, ("rows", "columns"))
    sides = () if batch is None else (check_extent("batch", batch),)
    groups, by_rows = -(-k // block), scale_order == "rows"
    a = te.placeholder((*sides, m, k), name="A", dtype=a_type)
    b = te.placeholder((*sides, n, k), name="B", dtype=b_type)
    a_scale = te.placeholder(
        (*sides, *((m, groups) if by_rows else (groups, m))), name="SCALE_A", dtype=_SUM
    )
    b_scale = te.placeholder((*sides, -(-n // block), groups), name="SCALE_B", dtype=_SUM)

    def of_a(*place: Expr) -> Expr:
        *which, i, x = place
        at = (i, x // block) if by_rows else (x // block, i)
        return a[place].astype(_SUM) * a_scale[(*which, *at)]

    def of_b(*place: Expr) -> Expr:
        *which, j, y = place
        return b[place].astype(_SUM) * b_scale[(*which, j // block, y // block)]

    left = te.compute((*sides, m, k), of_a, name="A_scaled")
    right = te.compute((*sides, n, k), of_b, name="B_scaled")
    r = te.reduce_axis((0, k), name="k")

    def product(*place: Expr) -> Expr:
        *which, i, j = place
        return te.sum(left[(*which, i, r)] * right[(*which, j, r)], axis=[r])

    c = te.compute((*sides, m, n), product, name="C")
    return te.create_prim_func([a, a_scale, b, b_scale, c])
