"""The matrix product as a TVM workload."""

from __future__ import annotations

from tvm import te
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.argument import check_choice, check_extent, check_flag
from mfmadsl.error import ArgumentError
from mfmadsl.model import ELEMENT_TYPES

TYPES = sorted(
    {t.dtype for t in ELEMENT_TYPES.values()}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)

SYMBOLS = ("int32", "int64")
"""The types of a symbol that stands for an extent."""


def matmul(
    m: int | Var,
    n: int,
    k: int,
    in_dtype: str,
    out_dtype: str,
    b_transposed: bool = False,
    b_dtype: str | None = None,
) -> PrimFunc:
    """C[m, n] = A[m, k] x B[k, n], accumulated in `out_dtype`; transposed, B lies as n x k.

    M is a number, or a symbol such as `te.var("m")`, for which each launch has a number. B has the
    type of A if `b_dtype` does not say another. Raises ArgumentError for an extent that is no
    positive number, and for a type that is not known.
    """
    m, n, k = checked_rows(m), check_extent("n", n), check_extent("k", k)
    check_flag("b_transposed", b_transposed)
    b_dtype = in_dtype if b_dtype is None else b_dtype
    for name, dtype in (("in_dtype", in_dtype), ("out_dtype", out_dtype), ("b_dtype", b_dtype)):
        check_choice(name, dtype, TYPES)
    a, b, c = product((m, n, k), (in_dtype, b_dtype, out_dtype), (False, b_transposed))
    return te.create_prim_func([a, b, c])


def checked_rows(m: object) -> int | Var:
    """M as a number, or the symbol that it is. Raises ArgumentError for anything else."""
    if not isinstance(m, Var):
        return check_extent("m", m)
    if str(m.ty) not in SYMBOLS:
        raise ArgumentError(f"m: `{m.name}` is a symbol of {m.ty}; it has to be of int32 or int64")
    return m


def product(
    extents: tuple[int | Var, int, int],
    dtypes: tuple[str, str, str],
    transposed: tuple[bool, bool],
    batch: int | None = None,
    name: str = "C",
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A, B and their product, as tensors for what follows; `extents` are M, N and K.

    Transposed, A lies as K x M, and B as N x K. With `batch` there are so many of each.
    """
    m, n, k = extents
    sides = (batch,) if batch else ()
    a_shape, b_shape = ((k, m) if transposed[0] else (m, k)), ((n, k) if transposed[1] else (k, n))
    a = te.placeholder((*sides, *a_shape), name="A", dtype=dtypes[0])
    b = te.placeholder((*sides, *b_shape), name="B", dtype=dtypes[1])
    r = te.reduce_axis((0, k), name="k")

    def element(*place: Expr) -> Expr:
        *which, i, j = place
        left = a[(*which, r, i)] if transposed[0] else a[(*which, i, r)]
        right = b[(*which, j, r)] if transposed[1] else b[(*which, r, j)]
        return te.sum(left.astype(dtypes[2]) * right.astype(dtypes[2]), axis=[r])

    return a, b, te.compute((*sides, m, n), element, name=name)
