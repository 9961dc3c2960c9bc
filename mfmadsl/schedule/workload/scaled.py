"""A product of small floats that are scaled in groups, as a TVM workload."""

from __future__ import annotations

from tvm.tirx import PrimFunc

from mfmadsl.argument import check_choice, check_extent
from mfmadsl.error import ArgumentError
from mfmadsl.model import ELEMENT_TYPES
from mfmadsl.schedule.product.described import described_types, forms, group_of, in_batches
from mfmadsl.schedule.workload.order import SHUFFLED, WORD, WORDS, in_order

_ORDERS = {"words": WORDS, "shuffled": SHUFFLED}


def scaled_matmul(
    m: int, n: int, k: int, a_type: str, b_type: str | None = None, scale_order: str = "rows",
    batch: int | None = None,
) -> PrimFunc:  # fmt: skip
    """C[m, n] = A[m, k] x B[n, k]^T of small floats, scaled in groups of 32 along k.

    The parameters are A, B, SCALE_A and SCALE_B, all uint8, and C, float32. A and B hold elements
    packed along k from the lowest bit up: [m, k * bits / 8] and [n, k * bits / 8]. The scales,
    [m, k / 32] and [n, k / 32], are in E8M0: each multiplies its group by 2 ** (scale - 127). The
    types are those of OCP's Microscaling Formats v1.0, by name or as instructions call them:
    float8_e4m3fn (fp8), float8_e5m2 (bf8), float6_e2m3fn (fp6), float6_e3m2fn (bf6), float4_e2m1fn
    (fp4); B has that of A if `b_type` does not say another. Elements and scales are numbers: what
    NaN gives is the instruction's. With `batch` there are so many matrices of each kind.

    In the `scale_order` "rows" scales lie as said; in "words" the four of 128 k lie together for
    all rows, [k / 128, m, 4] and [k / 128, n, 4]: whole lines of memory are of one step. In
    "shuffled" those of 32 rows and 256 k lie together as AITER and hipBLASLt have them, [m / 32,
    k / 256, 4, 16, 2, 2] with both rounded up: a scale of row i and group g is at [i // 32, g // 8,
    g % 4, i % 16, g // 4 % 2, i // 16 % 2], and those that fill a tile up are not used.

    Raises ArgumentError for an extent that is no positive number, a k that is no multiple of 32 (of
    128 in the order "words"), and other types or orders.
    """
    m, n, k = (check_extent(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    if batch is not None:
        batch = check_extent("batch", batch)
    types = a_type, a_type if b_type is None else b_type
    short = {ELEMENT_TYPES[each].short: each for each, _ in described_types(sparse=False)}
    for name, dtype in zip(("a_type", "b_type"), types, strict=True):
        check_choice(name, dtype, (*short.values(), *short))
    asked = tuple(short.get(each, each) for each in types)
    (form,) = (each for each in forms(sparse=False) if each.types == asked)
    check_choice("scale_order", scale_order, ("rows", *_ORDERS))
    if k % (group := group_of(form.intrinsic)):
        raise ArgumentError(
            f"k: {k} is no multiple of {group}, the elements that share a scale: pad A and B with"
            " zeros"
        )
    if scale_order == "words" and k % (group * WORD):
        raise ArgumentError(
            f"k: {k} is no multiple of {group * WORD}, the elements of {WORD} scales, which lie"
            " together in the order `words`"
        )
    workload = form.workload((m, n, k))
    if batch is not None:
        workload = in_batches(workload, batch)
    if scale_order == "rows":
        return workload
    return in_order(workload, ("SCALE_A", "SCALE_B"), _ORDERS[scale_order])
