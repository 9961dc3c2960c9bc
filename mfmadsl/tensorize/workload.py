"""The matrix product as a TVM workload."""

from __future__ import annotations

from tvm import te
from tvm.tirx import Expr, PrimFunc

from mfmadsl.argument import check_choice, check_extent, check_flag
from mfmadsl.model import ELEMENT_TYPES

_TYPES = sorted(
    {t.dtype for t in ELEMENT_TYPES.values()}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


def matmul(
    m: int,
    n: int,
    k: int,
    in_dtype: str,
    out_dtype: str,
    b_transposed: bool = False,
    b_dtype: str | None = None,
) -> PrimFunc:
    """C[m, n] = A[m, k] x B[k, n], accumulated in `out_dtype`; transposed, B lies as n x k.

    B has the type of A if `b_dtype` does not say another. Raises ArgumentError for an extent that
    is no positive number, and for a type that is not known.
    """
    m, n, k = (check_extent(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    check_flag("b_transposed", b_transposed)
    b_dtype = in_dtype if b_dtype is None else b_dtype
    for name, dtype in (("in_dtype", in_dtype), ("out_dtype", out_dtype), ("b_dtype", b_dtype)):
        check_choice(name, dtype, _TYPES)
    a = te.placeholder((m, k), name="A", dtype=in_dtype)
    shape = (n, k) if b_transposed else (k, n)
    b = te.placeholder(shape, name="B", dtype=b_dtype)
    r = te.reduce_axis((0, k), name="k")

    def product(i: Expr, j: Expr) -> Expr:
        right = b[j, r] if b_transposed else b[r, j]
        return te.sum(a[i, r].astype(out_dtype) * right.astype(out_dtype), axis=[r])

    c = te.compute((m, n), product, name="C")
    return te.create_prim_func([a, b, c])
