"""What an operand that is computed on its way is made of: dequantised weights, for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Expr, IterVar, PrimFunc

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.product.memory import computed_load, offset_of
from mfmadsl.schedule.product.nest import loads, substitute

_FAR = 1 << 12  # places along K, over which the bytes of one are an average
_BITWISE = tirx.BitwiseAnd, tirx.BitwiseOr, tirx.BitwiseXor, tirx.LShift, tirx.RShift
_ARITHMETIC = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min,
    tirx.Max, tirx.Cast, tirx.Select, *_BITWISE, Call,
)  # fmt: skip


@dataclass(frozen=True)
class Prologue:
    """What an element of an operand takes: `stored` has the bytes that each array it is made of has
    for one k of a row, and `work` is about how many instructions it takes to compute."""

    stored: tuple[float, ...]
    work: float


def prologue_of(
    function: PrimFunc, factor: TensorLoad, along: Sequence[IterVar]
) -> Prologue | None:
    """What an operand is made of, whose element is loaded so; None if an argument has it as it is.

    Arrays that do not change along K are left out.
    """
    value = _computed(function, factor)
    if isinstance(value, TensorLoad):
        return None
    arrays: dict[int, float] = {}
    for load in loads(value):
        each = bits_of(load.source.dtype) / 8 * _places_per_k(load, along)
        key = load.source.__chandle__()
        arrays[key] = max(arrays.get(key, 0.0), each)
    return Prologue(tuple(each for each in arrays.values() if each), _operations(value))


def _computed(function: PrimFunc, load: TensorLoad) -> Expr:
    """An element in terms of arguments, through the blocks that compute it."""
    if any(load.source.same_as(parameter) for parameter in function.params):
        return load
    if (computed := computed_load(function, load)) is None:
        return load
    value = substitute(*computed)
    return tvm_ffi.structural_map(value, (TensorLoad, lambda inner: _computed(function, inner)))


def _places_per_k(load: TensorLoad, along: Sequence[IterVar]) -> float:
    """How many places of an array there are for each k; one where that is read from memory."""
    if any(loads(index) for index in load.indices):
        return 1.0
    offset = offset_of(load.source, load.indices)
    start, end = (
        substitute(offset, {axis.var: tirx.const(k, str(axis.var.ty.dtype)) for axis in along[-1:]})
        for k in (0, _FAR)
    )
    distance = constant(Analyzer().simplify(end - start))
    return 1.0 if distance is None else min(1.0, abs(distance) / _FAR)


def _operations(value: Expr) -> float:
    """About how many instructions an expression takes, but for what says where an element lies.

    Halves are computed in pairs, and so are fields of a word (`small_integers`).
    """

    def moved(node: tirx.RShift | tirx.LShift) -> Expr:
        return type(node)(node.a, tirx.const(1, str(node.b.ty.dtype)))

    def loaded(load: TensorLoad) -> Expr:
        return tirx.Var("element", load.ty)

    plain = tvm_ffi.structural_map(
        value, [(TensorLoad, loaded), ((tirx.RShift, tirx.LShift), moved)]
    )
    found: list[Expr] = []
    tvm_ffi.structural_walk(plain, (_ARITHMETIC, found.append))
    return sum(0.5 if _goes_in_pairs(each) else 1 for each in found)


def _goes_in_pairs(operation: Expr) -> bool:
    if isinstance(operation, _BITWISE):
        return True
    return not isinstance(operation, tirx.Cast) and str(operation.ty.dtype) == "float16"
