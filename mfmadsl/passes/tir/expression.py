"""Questions about expressions and statements of TIR, and small ones made of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import copysign, gcd, prod
from typing import TypeAlias, TypeGuard, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr

from mfmadsl.error import MfmadslError
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.walk import mapped, walk

Item = TypeVar("Item")
Node = TypeVar("Node", bound=tvm_ffi.Object)

OfTwo: TypeAlias = (
    tirx.Add | tirx.Sub | tirx.Mul | tirx.Div | tirx.Mod | tirx.FloorDiv | tirx.FloorMod
    | tirx.Min | tirx.Max | tirx.EQ | tirx.NE | tirx.LT | tirx.LE | tirx.GT | tirx.GE
    | tirx.And | tirx.Or | tirx.LShift | tirx.RShift
    | tirx.BitwiseAnd | tirx.BitwiseOr | tirx.BitwiseXor
)  # fmt: skip
"""Expressions of two others, `a` and `b`."""

_OF_TWO = frozenset(get_args(OfTwo))

WORD = 4
"""Bytes of a register of one lane."""

_NUMPY = {
    tirx.Add: np.add, tirx.Sub: np.subtract, tirx.Mul: np.multiply, tirx.FloorDiv: np.floor_divide,
    tirx.FloorMod: np.mod, tirx.Min: np.minimum, tirx.Max: np.maximum,
    tirx.Div: np.floor_divide, tirx.Mod: np.mod,
    tirx.RShift: np.right_shift, tirx.LShift: np.left_shift, tirx.BitwiseAnd: np.bitwise_and,
    tirx.BitwiseOr: np.bitwise_or, tirx.BitwiseXor: np.bitwise_xor,
}  # fmt: skip


def is_of_two(expression: object) -> TypeGuard[OfTwo]:
    """Whether it is one of `OfTwo`, by its type: `isinstance` would ask each of them in turn."""
    return type(expression) in _OF_TWO


def scope_of(buffer: Buffer) -> str:
    """Where a buffer lies: "global", "shared", "local" or "warp"."""
    return str(buffer.scope() if callable(buffer.scope) else buffer.scope)


def name_of(call: Call) -> str:
    """What is called, without its namespace."""
    return str(getattr(call.op, "name", call.op)).rpartition(".")[2]


def loads_of(node: tvm_ffi.Object) -> list[TensorLoad]:
    """All elements that are read in an expression or statement."""
    found: list[TensorLoad] = []
    walk(node, (TensorLoad, found.append))
    return found


def load_of(store: BufferStore) -> TensorLoad:
    """The one element, or vector of them, that a store puts elsewhere as it is."""
    assert isinstance(store.value, TensorLoad)
    return store.value


def calls_of(node: tvm_ffi.Object) -> list[Call]:
    """All calls in an expression or statement, TVM's own operations among them."""
    found: list[Call] = []
    walk(node, (Call, found.append))
    return found


def variables_of(node: tvm_ffi.Object) -> list[tirx.Var]:
    """All variables in an expression or statement, as often as they stand there."""
    found: list[tirx.Var] = []
    walk(node, (tirx.Var, found.append))
    return found


def among(variable: tirx.Var, variables: Collection[tirx.Var]) -> bool:
    """Whether the variable is one of these; TVM tells them apart by identity."""
    return any(each.same_as(variable) for each in variables)


def depends(node: tvm_ffi.Object, variable: tirx.Var) -> bool:
    """Whether the variable stands in an expression or statement."""
    return among(variable, variables_of(node))


def substitute(node: Node, values: Mapping[tirx.Var, Expr]) -> Node:
    """The expression or statement with variables replaced."""
    if not values:
        return node
    found = {variable.__chandle__(): value for variable, value in values.items()}
    return mapped(node, (tirx.Var, lambda v: found.get(v.__chandle__(), v)))


def step_of(expression: Expr, variable: tirx.Var) -> int | None:
    """What an expression grows by with each step of a variable; None if not always by the same."""
    next_one = substitute(expression, {variable: variable + 1})
    return constant(Analyzer().simplify(next_one - expression))


def terms_of(expression: Expr) -> list[Expr]:
    """The terms of a sum."""
    if type(expression) is tirx.Add:
        return terms_of(expression.a) + terms_of(expression.b)
    return [expression]


def parted(expression: Expr) -> tuple[Expr, int]:
    """A sum, simplified, without the constants in it, and their sum."""
    terms = terms_of(expression)
    moving = total([t for t in terms if constant(t) is None], str(expression.ty.dtype))
    return moving, sum(number for t in terms if (number := constant(t)) is not None)


def multiplied_out(expression: Expr) -> list[Expr]:
    """The terms of a sum of which none is a product of sums."""
    if type(expression) is tirx.Add:
        return multiplied_out(expression.a) + multiplied_out(expression.b)
    if type(expression) is tirx.Sub:
        minus = tirx.const(-1, str(expression.ty.dtype))
        return multiplied_out(expression.a) + [t * minus for t in multiplied_out(expression.b)]
    if type(expression) is tirx.Mul:
        return [a * b for a in multiplied_out(expression.a) for b in multiplied_out(expression.b)]
    return [expression]


def conjuncts_of(condition: Expr) -> list[Expr]:
    """The conditions that must all hold."""
    if isinstance(condition, tirx.And):
        return conjuncts_of(condition.a) + conjuncts_of(condition.b)
    if isinstance(condition, Call) and name_of(condition) == "likely":
        return conjuncts_of(condition.args[0])
    return [condition]


def choice_of(value: Expr) -> tuple[Expr, Expr, Expr] | None:
    """(condition, value, other) of an `if_then_else` or a Select; None of anything else."""
    if isinstance(value, Call) and name_of(value) == "if_then_else":
        condition, chosen, other = value.args
        return condition, chosen, other
    if isinstance(value, tirx.Select):
        return value.condition, value.true_value, value.false_value
    return None


def distance(one: Expr, other: Expr, analyzer: Analyzer) -> int | None:
    """How much larger one integer is than another, where that is a number."""
    (own, more), (others, less) = _apart(one), _apart(other)
    if tvm_ffi.structural_equal(own, others):  # most neighbours: there is nothing to simplify
        return more - less
    return constant(analyzer.simplify(one - other))


def _apart(expression: Expr) -> tuple[Expr, int]:
    """An expression without the constant that it ends with, and that constant."""
    if type(expression) is tirx.Add and (number := constant(expression.b)) is not None:
        return expression.a, number
    return expression, 0


def total(parts: list[Expr], dtype: str = "int32") -> Expr:
    """The sum of some terms, in a type; 0 of none."""
    result = tirx.const(0, dtype)
    for part in parts:
        result = result + (part if str(part.ty.dtype) == dtype else tirx.Cast(dtype, part))
    return Analyzer().simplify(result)


def constant(expression: Expr | int | None) -> int | None:
    """The number, where it is known."""
    if isinstance(expression, int):
        return expression
    # `isinstance` of another node asks its abstract bases.
    return int(expression.value) if type(expression) is tirx.IntImm else None


def i32(number: int) -> Expr:
    """A constant of 32 bits."""
    return tirx.const(number, "int32")


def narrowed(expression: Expr) -> Expr:
    """An index below 2^31, of parts that are, in 32 bits."""
    if type(expression) is tirx.IntImm:
        return i32(int(expression.value))
    if str(expression.ty.dtype) == "int32":
        return expression
    if type(expression) is tirx.Cast:
        return narrowed(expression.value)
    if type(expression) in _ARITHMETIC:
        of_two = cast("OfTwo", expression)
        return type(of_two)(narrowed(of_two.a), narrowed(of_two.b))
    return tirx.Cast("int32", expression)


def widened(expression: Expr) -> Expr:
    """A number, computed in 64 bits, in which nothing of it wraps around."""
    if type(expression) is tirx.IntImm:
        return tirx.const(int(expression.value), "int64")
    if type(expression) is tirx.Cast:
        return widened(expression.value)
    if type(expression) in _ARITHMETIC:
        of_two = cast("OfTwo", expression)
        return type(of_two)(widened(of_two.a), widened(of_two.b))
    return expression if str(expression.ty.dtype) == "int64" else tirx.Cast("int64", expression)


def ramp(base: Expr | int, lanes: int) -> Expr:
    """Consecutive indices; a single one is no vector."""
    base = i32(base) if isinstance(base, int) else base
    return tirx.Ramp(base, i32(1), lanes) if lanes > 1 else base


def of_length(dtype: str, lanes: int) -> str:
    """The name of a vector type; a vector of one is a scalar."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def bits_of(dtype: object) -> int:
    """The bits of one element of a type."""
    return int(tvm.DataType(str(dtype)).bits)


def known_bytes(buffer: Buffer) -> int:
    """The bytes of a buffer of known extents, and none of another one."""
    return prod(constant(extent) or 0 for extent in buffer.shape) * bits_of(buffer.dtype) // 8


def bytes_of(buffer: Buffer) -> Expr:
    """The size of a whole buffer, in 64 bits."""
    elements: Expr | int = 1
    for extent in buffer.shape:
        number = constant(extent)
        elements = elements * (widened(extent) if number is None else number)
    size = elements * (bits_of(buffer.dtype) // 8)
    return tirx.const(size, "int64") if isinstance(size, int) else size


def is_zero(expression: Expr) -> bool:
    """Whether it is the constant 0, not the float -0, or a vector of them."""
    if isinstance(expression, tirx.Broadcast):
        return is_zero(expression.value)
    if isinstance(expression, tirx.Cast):
        return is_zero(expression.value)
    if isinstance(expression, tirx.FloatImm):
        return float(expression.value) == 0 and copysign(1, float(expression.value)) > 0
    return isinstance(expression, tirx.IntImm) and int(expression.value) == 0


def multiple_of(expression: Expr | int) -> int:
    """A number that surely divides an expression; 0 if that is 0."""
    if isinstance(expression, int):
        return abs(expression)
    if type(expression) is tirx.Add or type(expression) is tirx.Sub:
        return gcd(multiple_of(expression.a), multiple_of(expression.b))
    if type(expression) is tirx.Mul:
        return multiple_of(expression.a) * multiple_of(expression.b)
    if type(expression) is tirx.Cast:
        return multiple_of(expression.value)
    return abs(int(expression.value)) if type(expression) is tirx.IntImm else 1


def aligned(run: Sequence[Item], place: Callable[[Item], Expr]) -> Iterator[list[Item]]:
    """Neighbours in pieces that surely start at multiples of their own lengths, powers of two."""
    rest = list(run)
    while rest:
        step = multiple_of(place(rest[0]))
        length = 1 << len(rest).bit_length() - 1
        while length > 1 and step % length:
            length //= 2
        yield rest[:length]
        rest = rest[length:]


_ARITHMETIC = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, tirx.Min,
    tirx.Max,
)  # fmt: skip


class NotNumbersError(MfmadslError):
    """An expression has something in it that `numbers` does not compute."""


def numbers(expression: Expr | int, values: Mapping[str, npt.ArrayLike]) -> npt.NDArray[np.int64]:
    """An integer expression for arrays of values of its variables, by their names.

    Raises NotNumbersError if it has anything else in it; divisions are of what is not negative.
    """
    if (number := constant(expression)) is not None:
        return np.asarray(number, np.int64)
    if type(expression) is tirx.Var:
        if expression.name not in values:
            raise NotNumbersError(expression.name)
        return np.asarray(values[expression.name], np.int64)
    if type(expression) is tirx.Cast:
        return numbers(expression.value, values)
    if is_of_two(expression) and type(expression) in _NUMPY:
        function = _NUMPY[type(expression)]
        return np.asarray(function(numbers(expression.a, values), numbers(expression.b, values)))
    raise NotNumbersError(type(expression).__name__)


def elements_of(index: Expr) -> range:
    """The elements of an array of registers that an index names."""
    if type(index) is tirx.Ramp:
        start, stride = constant(index.base), constant(index.stride)
        if start is not None and stride == 1:
            return range(start, start + int(index.lanes))
    number = constant(index)
    if number is None:
        raise NotUnderstoodError(f"registers have no address, but `{index}` is one")
    return range(number, number + 1)


def field_of(value: Expr) -> tuple[Expr, Expr, int] | None:
    """(word, shift, mask) of `word >> shift & mask`, which takes a field of a word; None of any
    other expression."""
    if not isinstance(value, tirx.BitwiseAnd) or (mask := constant(value.b)) is None:
        return None
    if isinstance(value.a, tirx.RShift):
        return value.a.a, value.a.b, mask
    return value.a, tirx.const(0, str(value.ty.dtype)), mask
