"""The description of C += A x B of an A that stores two of each four elements.

Written by `mfmadsl compile` beside the modules that it generates.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return"
# ruff: noqa: N806, N812 (buffers are called like matrices, and TVMScript `T`)

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import te, tirx
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from .block import of_row, whole
from .operand import Index, Operand


def sparse(a: Operand, index: Operand, b: Operand, c: Operand) -> PrimFunc:
    """The description of C += A x B in registers; the bytes of the index tell where A's lie."""

    @T.prim_func(s_tir=True)
    def desc(a_held: T.handle, places: T.handle, b_held: T.handle, c_held: T.handle) -> None:
        A = T.match_buffer(a_held, a.registers, a.dtype, offset_factor=1, scope="warp")
        INDEX = T.match_buffer(places, index.registers, "uint8", offset_factor=1, scope="warp")
        B = T.match_buffer(b_held, b.registers, b.dtype, offset_factor=1, scope="warp")
        C = T.match_buffer(c_held, c.registers, c.dtype, offset_factor=1, scope="warp")
        with T.sblock("root"):
            T.reads(whole(C), whole(INDEX), whole(A), whole(B))
            T.writes(whole(C))
            for i, j, k in T.grid(*c.shape, b.shape[0]):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    at = T.meta_var(c.slot(vi, vj))
                    stored = T.meta_var(partial(of_row, A, a.slot, vi))
                    octet = T.meta_var(partial(of_row, INDEX, index.slot, vi))
                    right = T.meta_var(B[b.slot(vk, vj)])
                    C[at] = C[at] + _product(c.dtype, stored, octet, right, vk)

    return desc


def sparse_matmul(
    shape: tuple[int, int, int], dtypes: tuple[str, str, str], b_transposed: bool
) -> PrimFunc:
    """The workload of a sparse A: what is stored of it, the index's bytes, B, and C."""
    m, n, k = shape
    a = te.placeholder((m, k // 2), dtypes[0], name="A")
    index = te.placeholder((m, k // 8), "uint8", name="INDEX")
    b = te.placeholder((n, k) if b_transposed else (k, n), dtypes[1], name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Index, j: Index) -> Any:
        right = b[j, r] if b_transposed else b[r, j]
        term = _product(dtypes[2], lambda x: a[i, x], lambda x: index[i, x], right, r)
        return te.sum(term, axis=[r])

    return te.create_prim_func([a, index, b, te.compute((m, n), element, name="C")])


def _product(
    dtype: str,
    stored: Callable[[Index], Any],
    octet: Callable[[Index], Any],
    right: Any,
    k: Index,
) -> Any:
    """A[i, k] * B[k, j], where A[i, k] is 0 if it is not one of the two of four that are stored."""
    places = tirx.Cast("int32", octet(k // 8)) >> k // 4 % 2 * 4
    first, second = (tirx.Cast(dtype, stored(k // 4 * 2 + x)) for x in range(2))
    other = tirx.Select(places >> 2 & 3 == k % 4, second, tirx.const(0, dtype))
    return tirx.Select(places & 3 == k % 4, first, other) * tirx.Cast(dtype, right)
