"""The two nibbles of a byte become float16 together, such as neighbouring weights of four bits.

A permutation puts the byte into both halves of a word, of which a mask leaves one nibble each: the
halves are 1024 + low and 1024 + 16 * high. One multiplication with an addition makes numbers of
both, and subtracts what is subtracted next, such as a zero point. All of it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Expr, For, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.tir.bounds import analyzer_of
from mfmadsl.passes.tir.device import device
from mfmadsl.passes.tir.expression import NotNumbersError, bits_of, field_of, numbers
from mfmadsl.passes.tir.rewrite import Computing, dtype_of, lanes_of, rewrite
from mfmadsl.passes.tir.walk import walk
from mfmadsl.passes.types.small_integers import BASE, BITS, most_of

_NIBBLE = 4  # bits
_LARGEST = 512.0  # of what is subtracted in the same instruction


@dataclass(frozen=True)
class _Nibble:
    """An expression that is the float16 of a nibble of a word."""

    node: Expr
    word: Expr
    shift: Expr


def small_nibbles(function: PrimFunc) -> PrimFunc:
    """The function with nibbles of which a loop takes the two of a byte one after the other made
    float16 together."""
    made: list[_Nibble] = []
    analyzer, loops = analyzer_of(function), _loops(function)

    def known(expression: Expr) -> _Nibble | None:
        return next((each for each in made if each.node.same_as(expression)), None)

    def computes(expression: Computing) -> bool:
        if isinstance(expression, tirx.Cast):
            return _place(expression, analyzer, loops) is not None
        if isinstance(expression, tirx.Add) and not isinstance(expression.b, tirx.FloatImm):
            return False
        return isinstance(expression, tirx.Add | tirx.Sub) and known(expression.a) is not None

    def computed(expression: Computing) -> Expr:
        if isinstance(expression, tirx.Cast):
            found = _place(expression, analyzer, loops)
            assert found is not None
            word, shift = (each.astype("int32") for each in found)
            made.append(_Nibble(_number(word, shift), word, shift))
            return made[-1].node
        assert isinstance(expression, tirx.Add | tirx.Sub)
        nibble, other = known(expression.a), expression.b
        assert nibble is not None
        if isinstance(other, tirx.FloatImm):
            number = float(other.value) * (1 if isinstance(expression, tirx.Sub) else -1)
            if not number.is_integer() or abs(number) > _LARGEST:
                return expression
            return _number(nibble.word, nibble.shift, tirx.const(number, "float16"))
        if known(other) is not None:
            return _number(nibble.word, nibble.shift, other)
        if not isinstance(other, tirx.Cast):
            return expression
        most = most_of(other.value)
        if most is None or most > _LARGEST:
            return expression
        bits = other.value.astype("uint16") | tirx.const(BITS, "uint16")
        return _number(nibble.word, nibble.shift, tirx.reinterpret("float16", bits), BASE)

    return rewrite(function, computes, computed)


def _number(word: Expr, shift: Expr, less: Expr | None = None, more: float = 0.0) -> Expr:
    """A nibble as float16, less a whole number of 1024 at most, and more by another one."""
    subtracted = tirx.const(0.0, "float16") if less is None else less
    return device("float16", "nibble", word, shift, subtracted, tirx.const(more, "float16"))


def _place(cast: tirx.Cast, analyzer: Analyzer, loops: list[Var]) -> tuple[Expr, Expr] | None:
    """(word, shift) of a nibble that a cast makes a float16, where one of the loops has the other
    nibble of the byte next."""
    value = cast.value
    if dtype_of(cast) != "float16" or lanes_of(cast) > 1:
        return None
    found = field_of(value) if dtype_of(value) in ("int32", "uint32") else None
    if found is None or found[2] != (1 << _NIBBLE) - 1:
        return None
    word, shift, _ = found
    while isinstance(shift, tirx.Cast):
        shift = shift.value
    bound, steps = analyzer.const_int_bound(shift), analyzer.modular_set(shift)
    inside = bound.min_value >= 0 and bound.max_value <= bits_of("int32") - _NIBBLE
    whole = steps.coeff % _NIBBLE == 0 and steps.base % _NIBBLE == 0
    return (word, shift) if inside and whole and _other_is_next(shift, loops) else None


def _other_is_next(shift: Expr, loops: list[Var]) -> bool:
    """Whether one of the loops goes from the low nibble of a byte to the high one."""
    variables = list(undefined_vars(shift))
    start: dict[str, npt.ArrayLike] = {each.name: 0 for each in variables}
    for variable in variables:
        if not any(variable.same_as(each) for each in loops):
            continue
        try:
            low, high = numbers(shift, {**start, variable.name: np.arange(2)})
        except NotNumbersError:
            return False
        if high - low == _NIBBLE and low % (2 * _NIBBLE) == 0:
            return True
    return False


def _loops(function: PrimFunc) -> list[Var]:
    """The variables of loops that a thread walks itself."""
    found: list[Var] = []
    walk(function.body, (For, lambda loop: found.append(loop.loop_var)))
    return found
