"""A product with a matrix that stores two of each four elements, as a TVM workload."""

from __future__ import annotations

from tvm.tirx import PrimFunc

from mfmadsl.argument import check_choice, check_extent, check_flag
from mfmadsl.error import ArgumentError
from mfmadsl.schedule.product.described import forms, in_batches
from mfmadsl.schedule.workload.order import WORD, WORDS, in_order

_OCTET = 8  # elements along k of which a byte of the index tells


def sparse_matmul(
    m: int, n: int, k: int, a_type: str, b_type: str | None = None, b_transposed: bool = False,
    batch: int | None = None, index_order: str = "rows",
) -> PrimFunc:  # fmt: skip
    """C[m, n] = A[m, k] x B[k, n] of an A that stores two of each four elements along k.

    The parameters are A, [m, k / 2], INDEX, uint8, [m, k / 8], B and C. `mfmadsl.compress` gives
    `values` and `packed`, which are A and INDEX: two bits for each stored element, its place among
    the four, from the lowest bit up. The two places of a group differ. Transposed, B lies as n x k.
    With `batch` there are so many matrices of each kind. In the `index_order` "words" the four
    bytes of 32 k lie together for all rows, [k / 32, m, 4]: whole lines of memory are of one step.

    The types are those of the V_SMFMAC_* instructions: float16, bfloat16, int8, and the eight-bit
    floats of a chip (float8_e4m3fnuz and float8_e5m2fnuz of gfx942, float8_e4m3fn and float8_e5m2
    of gfx950); B has that of A if `b_type` does not say another. C is int32 of int8, else float32.

    Raises ArgumentError for an extent that is no positive number, a k that is no multiple of 8 (of
    32 in the order "words"), and other types or orders.
    """
    m, n, k = (check_extent(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    if batch is not None:
        batch = check_extent("batch", batch)
    check_flag("b_transposed", b_transposed)
    found = {f.types: f for f in forms(sparse=True) if f.b_transposed == b_transposed}
    check_choice("a_type", a_type, sorted({a for a, _ in found}))
    b_type = a_type if b_type is None else b_type
    check_choice("b_type", b_type, sorted(b for a, b in found if a == a_type))
    check_choice("index_order", index_order, ("rows", "words"))
    octets = WORD if index_order == "words" else 1
    if k % (_OCTET * octets):
        told = "a byte of INDEX tells" if octets == 1 else f"{octets} bytes of INDEX tell"
        raise ArgumentError(
            f"k: {k} is no multiple of {_OCTET * octets}, the elements of which {told}: pad A and B"
            " with zeros"
        )
    workload = found[a_type, b_type].workload((m, n, k))
    if batch is not None:
        workload = in_batches(workload, batch)
    return workload if index_order == "rows" else in_order(workload, ("INDEX",), WORDS)
