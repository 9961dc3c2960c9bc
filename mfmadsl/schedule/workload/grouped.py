"""A product with a matrix for each group of rows, as a TVM workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import te
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.argument import check_choice, check_extent, check_integer
from mfmadsl.error import ArgumentError
from mfmadsl.schedule.product.grouped import group_of_rows
from mfmadsl.schedule.workload.dense import TYPES


def grouped_matmul(
    m: int | Var, n: int, k: int, groups: int, in_dtype: str, out_dtype: str,
    b_dtype: str | None = None, tokens: int | Var | None = None,
) -> PrimFunc:  # fmt: skip
    """C[m, n] = A[m, k] x B[group, n, k]^T, a matrix B for each of the groups that rows are in.

    The parameters are A, ENDS, B and C. Rows are sorted by group: group e has those from the end of
    the one before it to ENDS[e], an int32, and the last group all that are left; an end is never
    less than the one before. With `tokens` A has so many rows, and ROWS, [m] of int32 after A, says
    which one each row of C is of: those of a token's experts, for one. M and `tokens` are numbers,
    or symbols such as `te.var("m")`, for which each launch has numbers.

    Sums are of `out_dtype`, and those of 16 bits of float32, rounded at the end; B has the type of
    A if `b_dtype` does not say another. Raises ArgumentError for an extent that is no positive
    number, fewer than two groups, and for a type that is not known.
    """
    m, n, k = sorted_rows("m", m), check_extent("n", n), check_extent("k", k)
    b_dtype = in_dtype if b_dtype is None else b_dtype
    for name, dtype in (("in_dtype", in_dtype), ("out_dtype", out_dtype), ("b_dtype", b_dtype)):
        check_choice(name, dtype, TYPES)
    if check_integer("groups", groups) == 1:
        raise ArgumentError(
            "groups: 1 has one matrix for all rows: use `matmul`, b_transposed=True"
        )
    rows = rows_of_groups(m, k, groups, tokens, in_dtype, "groups")
    b = te.placeholder((groups, n, k), name="B", dtype=b_dtype)
    r = te.reduce_axis((0, k), name="k")

    def factors(i: Expr, j: Expr) -> tuple[Expr, Expr]:
        return rows.element(i, r), b[rows.group[i], j, r]

    c = grouped_sums((m, n), factors, r, out_dtype)
    return te.create_prim_func([*rows.parameters, b, c])


def grouped_sums(
    shape: tuple[int | Var, int], factors: Callable[[Expr, Expr], tuple[Expr, Expr]], along: Expr,
    dtype: str,
) -> te.Tensor:  # fmt: skip
    """C, the sums of products of two factors of each place, which have its type; those of 16 bits
    are of float32, rounded at the end."""
    is_half = dtype in ("float16", "bfloat16")
    wide = "float32" if is_half else dtype

    def element(i: Expr, j: Expr) -> Expr:
        left, right = factors(i, j)
        return te.sum(left.astype(wide) * right.astype(wide), axis=[along])

    sums = te.compute(shape, element, name="sums" if is_half else "C")
    if not is_half:
        return sums
    return te.compute(shape, lambda i, j: sums[i, j].astype(dtype), name="C")


@dataclass(frozen=True)
class RowsOfGroups:
    """Rows that are sorted by group: the `parameters`, of which A is the first, the `row` of A that
    each is, and the `group` of each."""

    parameters: list[te.Tensor]
    row: Callable[[Expr], Expr]
    group: te.Tensor

    def element(self, i: Expr, r: Expr) -> Expr:
        """That of A for a row."""
        found: Expr = self.parameters[0][self.row(i), r]
        return found


def sorted_rows(name: str, rows: object) -> int | Var:
    """How many rows are sorted by group, or tokens there are. Raises ArgumentError for what is no
    positive number and no symbol of 32 bits."""
    if isinstance(rows, Var) and str(rows.ty) != "int32":
        raise ArgumentError(
            f"{name}: `{rows.name}` is a symbol of {rows.ty}; rows of groups are counted in int32"
        )
    return rows if isinstance(rows, Var) else check_extent(name, rows)


def rows_of_groups(
    m: int | Var, k: int, groups: int, tokens: int | Var | None, dtype: str, name: str
) -> RowsOfGroups:
    """A, perhaps ROWS, and ENDS of m rows in groups, which are called `name`.

    Raises ArgumentError for fewer than two groups, and for an extent that is no positive number.
    """
    if check_integer(name, groups) < 2:
        raise ArgumentError(
            f"{name}: is at least 2, not {groups}; leave it out where all rows have one matrix"
        )
    groups = check_extent(name, groups)
    given = m if tokens is None else sorted_rows("tokens", tokens)
    a = te.placeholder((given, k), name="A", dtype=dtype)
    rows = te.placeholder((m,), name="ROWS", dtype="int32")
    ends = te.placeholder((groups,), name="ENDS", dtype="int32")

    def row(i: Expr) -> Expr:
        return i if tokens is None else rows[i]

    parameters = [a, *([] if tokens is None else [rows]), ends]
    return RowsOfGroups(parameters, row, group_of_rows(ends, m))
