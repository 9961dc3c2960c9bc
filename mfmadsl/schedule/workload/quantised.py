"""A product whose B is stored in a few bits, as language models store their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Protocol, TypeAlias

from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.argument import check_choice, check_extent
from mfmadsl.error import ArgumentError
from mfmadsl.schedule.workload.dense import TYPES, checked_rows
from mfmadsl.schedule.workload.grouped import grouped_sums, rows_of_groups, sorted_rows

ACTIVATIONS = ("float16", "bfloat16")
"""The types of A, in which weights are computed, too."""

NIBBLES = 8
"""Elements of four bits in a word."""

_SUMS = "float32"


class _Array(Protocol):
    """What has an element at indices."""

    def __getitem__(self, indices: Expr | tuple[Expr, ...]) -> Expr: ...


Arrays: TypeAlias = Sequence[_Array]


@dataclass(frozen=True)
class WeightFormat:
    """How weights [n, k] are stored: `arrays` of n, k, the group and the type of A, and the weight
    at row j and column r that these make.

    Scales are for `group` neighbouring k, or for all of a row if that is None; it is `fixed` where
    the format has no other. N and K are multiples of `n_unit` and `k_unit`. They lie `by_rows`
    where neighbours are of K.
    """

    name: str
    group: int | None
    fixed: bool
    n_unit: int
    k_unit: int
    by_rows: bool
    arrays: Callable[[int, int, int, str], list[te.Tensor]]
    weight: Callable[[Arrays, Expr, Expr, int, str], Expr]


def quantised_matmul(
    m: int | Var, n: int, k: int, weights: str, in_dtype: str = "float16",
    out_dtype: str = "float32", group: int | None = None, experts: int | None = None,
    tokens: int | Var | None = None,
) -> PrimFunc:  # fmt: skip
    """C[m, n] = A[m, k] x W[n, k]^T of weights of four or eight bits, which become `in_dtype`.

    The parameters are A, what the format `weights` stores, and C, of `out_dtype`. Kernels add up
    float16 and bfloat16 in float32, and round at the end; with `experts` the workload says so, and
    without it has sums of `out_dtype`. The formats are:

    - "q4f16" (MLC-LLM): Q, uint32 [n, k / 8], of eight k in a word; SCALES, [n, k / group]. A
      weight is (nibble - 7) * scale, and a group has 32 of K.
    - "gptq": QWEIGHT, int32 [k / 8, n], of eight k in a word; QZEROS, int32 [k / group, n / 8];
      SCALES, [k / group, n]. A weight is (nibble - (zero + 1)) * scale, and a group has 128 of K.
      Groups follow one another, as with a sorted `g_idx`.
    - "awq": QWEIGHT, int32 [k, n / 8], of eight rows in a word, in the order 0, 2, 4, 6, 1, 3, 5,
      7; QZEROS, int32 [k / group, n / 8], in that order, too; SCALES, [k / group, n]. A weight is
      (nibble - zero) * scale, and a group has 128 of K.
    - "mxfp4": Q, uint8 [n, k / 2], of two elements of float4_e2m1fn; SCALES, uint8 [n, k / 32] in
      E8M0 (OCP Microscaling Formats v1.0): a weight is element * 2 ** (scale - 127), of which both
      factors are rounded to `in_dtype`.
    - "int8": Q, int8 [n, k]; SCALES, [n]. A weight is q * scale.

    M is a number, or a symbol such as `te.var("m")`, and so are `tokens`. Words fill from the
    lowest bit up. Scales without a type here have `in_dtype`, in which weights are rounded.

    With `experts` there are weights for each of so many, in arrays with the expert before their
    other axes, and rows are sorted by expert as `grouped_matmul` sorts them by group: ENDS, and
    ROWS if there are `tokens`, are parameters after A.

    Raises ArgumentError for an extent that is no positive number or is not made of whole words and
    groups, for fewer than two experts, for tokens without them, and for a format or a type that is
    not known.
    """
    n, k = check_extent("n", n), check_extent("k", k)
    check_choice("weights", weights, FORMATS)
    check_choice("in_dtype", in_dtype, ACTIVATIONS)
    check_choice("out_dtype", out_dtype, TYPES)
    stored = FORMATS[weights]
    group = group_of(stored, n, k, group)
    arrays = stored.arrays(n, k, group, in_dtype)
    r = te.reduce_axis((0, k), "k")
    if experts is None:
        if tokens is not None:
            raise ArgumentError("tokens: are of a product with experts; pass how many as `experts`")
        rows = checked_rows(m)
        a = te.placeholder((rows, k), in_dtype, "A")
        w = te.compute((n, k), lambda j, r: stored.weight(arrays, j, r, group, in_dtype), "W")

        def element(i: Expr, j: Expr) -> Expr:
            return te.sum(a[i, r].astype(out_dtype) * w[j, r].astype(out_dtype), axis=[r])

        return te.create_prim_func([a, *arrays, te.compute((rows, n), element, "C")])
    count = sorted_rows("m", m)
    rows_of_experts = rows_of_groups(count, k, experts, tokens, in_dtype, "experts")
    of_all = [te.placeholder((experts, *x.shape), x.dtype, x.op.name) for x in arrays]

    def weight(e: Expr, j: Expr, r: Expr) -> Expr:
        return stored.weight([_OfExpert(x, e) for x in of_all], j, r, group, in_dtype)

    w = te.compute((experts, n, k), weight, "W")

    def factors(i: Expr, j: Expr) -> tuple[Expr, Expr]:
        return rows_of_experts.element(i, r), w[rows_of_experts.group[i], j, r]

    c = grouped_sums((count, n), factors, r, out_dtype)
    return te.create_prim_func([*rows_of_experts.parameters, *of_all, c])


@dataclass(frozen=True)
class _OfExpert:
    """An array of all experts, as that of one."""

    whole: te.Tensor
    expert: Expr

    def __getitem__(self, indices: Expr | tuple[Expr, ...]) -> Expr:
        rest = indices if isinstance(indices, tuple) else (indices,)
        element: Expr = self.whole[(self.expert, *rest)]
        return element


def group_of(stored: WeightFormat, n: int, k: int, group: int | None) -> int:
    """How many neighbouring k have a scale in common.

    Raises ArgumentError for a group that the format does not have, and for extents of no whole
    words and groups.
    """
    found = (stored.group or k) if group is None else check_extent("group", group)
    if group is not None and stored.fixed and found != (stored.group or k):
        own = "a row" if stored.group is None else f"{stored.group} of K"
        raise ArgumentError(f"group: the scales of {stored.name} are for {own}, not for {group}")
    if n % stored.n_unit:
        raise ArgumentError(
            f"n: {n} is no multiple of {stored.n_unit}, the rows in a word of {stored.name}: pad"
            " the weights with rows of zeros"
        )
    if k % (unit := lcm(found, stored.k_unit)):
        words = "" if unit == found else f", and {stored.k_unit} a word"
        raise ArgumentError(
            f"k: {k} is no multiple of {unit}: {found} of K share a scale of {stored.name}{words}:"
            " pad A and the weights with zeros"
        )
    return found


def _nibble(word: Expr, place: Expr, dtype: str) -> Expr:
    """A field of four bits of a word of some type."""
    return word >> (place * 4).astype(dtype) & tirx.const(15, dtype)


def _q4f16_arrays(n: int, k: int, group: int, dtype: str) -> list[te.Tensor]:
    return [
        te.placeholder((n, k // NIBBLES), "uint32", "Q"),
        te.placeholder((n, k // group), dtype, "SCALES"),
    ]


def _q4f16(arrays: Arrays, j: Expr, r: Expr, group: int, dtype: str) -> Expr:
    q, scales = arrays
    number = _nibble(q[j, r // NIBBLES], r % NIBBLES, "uint32").astype(dtype)
    return (number - tirx.const(7, dtype)) * scales[j, r // group]


def _gptq_arrays(n: int, k: int, group: int, dtype: str) -> list[te.Tensor]:
    return [
        te.placeholder((k // NIBBLES, n), "int32", "QWEIGHT"),
        te.placeholder((k // group, n // NIBBLES), "int32", "QZEROS"),
        te.placeholder((k // group, n), dtype, "SCALES"),
    ]


def _gptq(arrays: Arrays, j: Expr, r: Expr, group: int, dtype: str) -> Expr:
    q, zeros, scales = arrays
    number = _nibble(q[r // NIBBLES, j], r % NIBBLES, "int32")
    zero = _nibble(zeros[r // group, j // NIBBLES], j % NIBBLES, "int32") + 1
    return (number.astype(dtype) - zero.astype(dtype)) * scales[r // group, j]


def _awq_arrays(n: int, k: int, group: int, dtype: str) -> list[te.Tensor]:
    _, zeros, scales = _gptq_arrays(n, k, group, dtype)
    return [te.placeholder((k, n // NIBBLES), "int32", "QWEIGHT"), zeros, scales]


def _awq(arrays: Arrays, j: Expr, r: Expr, group: int, dtype: str) -> Expr:
    q, zeros, scales = arrays
    place = j % 2 * 4 + j % NIBBLES // 2  # even columns lie below odd ones
    number, zero = (
        _nibble(each[row, j // NIBBLES], place, "int32").astype(dtype)
        for each, row in ((q, r), (zeros, r // group))
    )
    return (number - zero) * scales[r // group, j]


def _mxfp4_arrays(n: int, k: int, group: int, dtype: str) -> list[te.Tensor]:
    return [
        te.placeholder((n, k // 2), "uint8", "Q"),
        te.placeholder((n, k // group), "uint8", "SCALES"),
    ]


def _mxfp4(arrays: Arrays, j: Expr, r: Expr, group: int, dtype: str) -> Expr:
    """Three bits are the lowest of an exponent and the highest of a fraction; the exponent's bias
    is 1."""
    q, scales = arrays
    fraction, bias = {"float16": (10, 15), "bfloat16": (7, 127)}[dtype]
    field = (q[j, r // 2] >> (r % 2 * 4).astype("uint8") & tirx.const(15, "uint8")).astype("uint16")
    sign = (field & tirx.const(8, "uint16")) << tirx.const(12, "uint16")
    bits = (field & tirx.const(7, "uint16")) << tirx.const(fraction - 1, "uint16")
    element = tirx.reinterpret(dtype, sign | bits) * tirx.const(2.0 ** (bias - 1), dtype)
    scale = tirx.reinterpret("float8_e8m0fnu", scales[j, r // group])
    return element * scale.astype("float32").astype(dtype)


def _int8_arrays(n: int, k: int, group: int, dtype: str) -> list[te.Tensor]:
    return [te.placeholder((n, k), "int8", "Q"), te.placeholder((n,), dtype, "SCALES")]


def _int8(arrays: Arrays, j: Expr, r: Expr, group: int, dtype: str) -> Expr:
    q, scales = arrays
    number: Expr = q[j, r].astype(dtype)
    return number * scales[j]


FORMATS = {
    each.name: each
    for each in (
        WeightFormat("q4f16", 32, False, 1, NIBBLES, True, _q4f16_arrays, _q4f16),
        WeightFormat("gptq", 128, False, NIBBLES, NIBBLES, False, _gptq_arrays, _gptq),
        WeightFormat("awq", 128, False, NIBBLES, 1, False, _awq_arrays, _awq),
        WeightFormat("mxfp4", 32, True, 1, 2, True, _mxfp4_arrays, _mxfp4),
        WeightFormat("int8", None, True, 1, 1, True, _int8_arrays, _int8),
    )
}
"""The formats of weights, by name."""
