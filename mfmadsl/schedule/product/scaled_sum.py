"""Scaled products as people write them: elements and scales are numbers of their own types.

    C[i, j] += f32(A[i, k]) * f32(SA[i, k // 32]) * (f32(B[j, k]) * f32(SB[j, k // 32]))

The factors stand in any order, in the sum or in blocks before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.tirx import Expr, IterVar, PrimFunc

from mfmadsl.passes.tir.expression import name_of
from mfmadsl.schedule.product.described import forms
from mfmadsl.schedule.product.factors import summed_factors
from mfmadsl.schedule.product.nest import Nest, check_plain, is_number, line, same
from mfmadsl.schedule.product.sum_of_products import check_init, uses

SCALE = "float8_e8m0fnu"
"""The type of a scale: a power of two."""

_BIAS = 127  # of a scale's exponent (OCP Microscaling Formats v1.0, 5.4.1)
_FRACTION_BITS = 23  # of float32


@dataclass(frozen=True)
class ScaledSum:
    """A sum of scaled products: the loads of A, SCALE_A, B and SCALE_B, None where there is none.

    `axes` are those of the batch, if there is one, and i, j and k; `inside` are the blocks that
    compute the factors.
    """

    nest: Nest
    axes: tuple[IterVar, ...]
    factors: tuple[TensorLoad, TensorLoad | None, TensorLoad, TensorLoad | None]
    inside: tuple[Nest, ...]


def scaled_sum(function: PrimFunc, nest: Nest) -> ScaledSum | None:
    """What a block of a function sums, if that is of scaled elements.

    Raises ScheduleError, with the name of the block, for scales and loops that none has.
    """
    found = summed_factors(function, nest)
    if found is None:
        return None
    values, scales = [], []
    for factor in found.factors:
        if (load := _element(factor)) is not None:
            values.append(load)
        elif (load := _power(factor)) is not None:
            scales.append(load)
        else:
            return None
    if not scales or len(values) != 2:
        return None
    known = {each for form in forms(sparse=False) for each in form.types}
    if not all(str(each.source.dtype) in known for each in values):
        return None
    return _placed(nest, values, scales, found.inside)


def _element(factor: Expr) -> TensorLoad | None:
    """What is converted to float32, an element or a scale of its own type."""
    if isinstance(factor, tirx.Cast) and isinstance(factor.value, TensorLoad):
        return factor.value if str(factor.value.ty.dtype) != SCALE else None
    return None


def _power(factor: Expr) -> TensorLoad | None:
    """The scale that a factor is the power of two of: of its own type, or written with a byte's."""
    if isinstance(factor, tirx.Cast) and isinstance(factor.value, TensorLoad):
        return factor.value if str(factor.value.ty.dtype) == SCALE else None
    if not isinstance(factor, Call):
        return None
    name, inner = name_of(factor), factor.args[0]
    if name == "reinterpret" and isinstance(inner, tirx.LShift):
        return _octet(inner.a) if is_number(inner.b, _FRACTION_BITS) else None
    if name == "exp2" and isinstance(inner, tirx.Sub) and is_number(inner.b, _BIAS):
        return _octet(inner.a)
    return None


def _octet(value: Expr) -> TensorLoad | None:
    """The byte that is converted to a wider number."""
    inner = value.value if isinstance(value, tirx.Cast) else None
    if isinstance(inner, TensorLoad) and str(inner.source.dtype) == "uint8":
        return inner
    return None


def _placed(
    nest: Nest, values: Sequence[TensorLoad], scales: Sequence[TensorLoad],
    inside: tuple[Nest, ...],
) -> ScaledSum:  # fmt: skip
    """Which factor is of A and which of B, by the axes that its place depends on."""
    check_plain(nest)
    axes = list(nest.block.iter_vars)
    k = [axis for axis in axes if axis.iter_type == IterVar.CommReduce]
    places = [axis for axis in axes if axis.iter_type == IterVar.DataPar]
    if len(k) != 1 or len(places) not in (2, 3):
        raise nest.refusal("multiplies scaled elements in other loops than [batch], i, j and k")
    store = nest.store
    if not same(list(store.indices), [axis.var for axis in places]):
        raise nest.refusal(f"writes scaled products at `{line(store)}`, and not by its own loops")
    check_init(nest, store)
    *_, i, j = places
    sides: list[TensorLoad | None] = []
    for axis, other in ((i, j), (j, i)):
        for found, kind in ((values, "element"), (scales, "scale")):
            own = [load for load in found if uses(load, axis.var)]
            if len(own) > 1 or any(uses(load, other.var) for load in own):
                raise nest.refusal(f"has more than one {kind} for `{axis.var.name}`")
            sides += own or [None]
    a, scale_a, b, scale_b = sides
    if a is None or b is None:
        raise nest.refusal("has no element of each factor for each of its rows and columns")
    if sum(each is not None for each in (scale_a, scale_b)) != len(scales):
        raise nest.refusal("has a scale that belongs to no row or column")
    return ScaledSum(nest, (*places, *k), (a, scale_a, b, scale_b), inside)
