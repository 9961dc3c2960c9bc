"""A product of small floats whose scales belong to blocks, as a TVM workload."""

from __future__ import annotations

from tvm import te
from tvm.tirx import Expr, PrimFunc

from mfmadsl.argument import check_choice, check_extent
from mfmadsl.error import ArgumentError
from mfmadsl.schedule.product.block_scaled import FLOATS
from mfmadsl.schedule.workload.grouped import rows_of_groups

_SUM = "float32"


def block_scaled_matmul(
    m: int, n: int, k: int, a_type: str, b_type: str | None = None, block: int = 128,
    scale_order: str = "rows", batch: int | None = None, experts: int | None = None,
    tokens: int | None = None,
) -> PrimFunc:  # fmt: skip
    """C[m, n] = A[m, k] x B[n, k]^T of floats of eight bits, scaled in blocks, as DeepSeek-V3 has.

    The parameters are A, SCALE_A, B, SCALE_B and C. Each `block` neighbouring k of a row of A share
    a scale, and each `block` x `block` elements of B: SCALE_A is [m, k / block] in the
    `scale_order` "rows" and [k / block, m] in the order "columns", SCALE_B [n / block, k / block],
    both rounded up and float32, as C is. With `batch` there are so many matrices of each kind.

    With `experts` there are B and SCALE_B for each of so many, with the expert before their other
    axes, and rows are sorted by expert as `grouped_matmul` sorts them by group: ENDS, and ROWS if
    there are `tokens`, are parameters after SCALE_A, and A and SCALE_A are of tokens.

    Raises ArgumentError for an extent that is no positive number, for other types and orders, for
    fewer than two experts or experts in batches, and for tokens without experts.
    """
    m, n, k = (check_extent(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    block = check_extent("block", block)
    b_type = a_type if b_type is None else b_type
    for name, dtype in (("a_type", a_type), ("b_type", b_type)):
        check_choice(name, dtype, sorted(FLOATS))
    check_choice("scale_order", scale_order, ("rows", "columns"))
    groups, by_rows = -(-k // block), scale_order == "rows"
    if experts is not None:
        if batch is not None:
            raise ArgumentError("batch: a product with experts is one product; leave it out")
        shape = m, n, k, groups
        return _of_experts(shape, (a_type, b_type), block, by_rows, experts, tokens)
    if tokens is not None:
        raise ArgumentError("tokens: are of a product with experts; pass how many as `experts`")
    sides = () if batch is None else (check_extent("batch", batch),)
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


def _of_experts(
    shape: tuple[int, int, int, int], types: tuple[str, str], block: int, by_rows: bool,
    experts: int, tokens: int | None,
) -> PrimFunc:  # fmt: skip
    """The product of rows that are sorted by expert; `shape` is M, N, K and the blocks along K."""
    m, n, k, groups = shape
    rows = rows_of_groups(m, k, experts, tokens, types[0], "experts")
    a, *which = rows.parameters
    given = a.shape[0]
    a_scale = te.placeholder((given, groups) if by_rows else (groups, given), _SUM, "SCALE_A")
    b = te.placeholder((experts, n, k), types[1], "B")
    b_scale = te.placeholder((experts, -(-n // block), groups), _SUM, "SCALE_B")

    def of_a(row: Expr, x: Expr) -> Expr:
        at = (row, x // block) if by_rows else (x // block, row)
        return a[row, x].astype(_SUM) * a_scale[at]

    def of_b(e: Expr, j: Expr, y: Expr) -> Expr:
        return b[e, j, y].astype(_SUM) * b_scale[e, j // block, y // block]

    left = te.compute((given, k), of_a, name="A_scaled")
    right = te.compute((experts, n, k), of_b, name="B_scaled")
    r = te.reduce_axis((0, k), name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return te.sum(left[rows.row(i), r] * right[rows.group[i], j, r], axis=[r])

    c = te.compute((m, n), product, name="C")
    return te.create_prim_func([a, a_scale, *which, b, b_scale, c])
