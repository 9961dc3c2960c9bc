"""What an operand that is computed on its way is made of: dequantised weights, for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Expr, IterVar, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.model import ELEMENT_TYPES, Architecture
from mfmadsl.passes.tir.expression import NotNumbersError, OfTwo, bits_of, numbers
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.passes.types.small_floats import is_made_of_bits
from mfmadsl.schedule.product.memory import computed_load, offset_of
from mfmadsl.schedule.product.nest import loads, substitute

_FAR = 1 << 12  # places along an axis, over which those of one are an average
_VECTOR = 1 / 8  # of the elements that are stored together, which share what is the same
_E2M1 = "float4_e2m1fn"
_ELEMENT = 0.5  # instructions of an element of E2M1, of which the chip converts two at once
_ELEMENT_BY_TABLE = 1.0  # on other chips
_OCTETS = 3 / 8  # instructions that leave a nibble in each byte, which a conversion takes
_ROUNDED = 0.5  # instructions of a result that the chip rounds to bfloat16, two at once
_ROUNDED_BY_FLOATS = 1.5  # of one that a chip rounds by computing two floats at once
_ROUNDED_BY_BITS = 2.5  # of one on other chips
_SYMBOL = 1 << 14  # for an extent that is known at the launch only
_BITWISE = tirx.BitwiseAnd, tirx.BitwiseOr, tirx.BitwiseXor, tirx.LShift, tirx.RShift
_ARITHMETIC = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min,
    tirx.Max, tirx.Cast, tirx.Select, *_BITWISE, Call,
)  # fmt: skip


@dataclass(frozen=True)
class SourceArray:
    """What elements are made of: of places of so many bytes each k takes `per_k` and each row
    `per_row`, and those `along_rows` or along K lie together."""

    place_bytes: float
    per_k: float
    per_row: float
    along_rows: bool

    @property
    def k_bytes(self) -> float:
        """The bytes of one k of a row."""
        return self.place_bytes * self.per_k * self.per_row

    def line_bytes(self, rows: float, depth: int, line: int) -> float:
        """The bytes of the lines of memory in which so many k of so many rows lie."""
        lines, together = depth * self.per_k, rows * self.per_row
        if not self.along_rows:
            lines, together = together, lines
        return max(1.0, lines) * max(line, together * self.place_bytes)


@dataclass(frozen=True)
class Prologue:
    """What an element of an operand takes: the arrays it is made of, and about how many
    instructions it takes to compute on any chip (`work`), beside operations on `floats` in place
    of bfloat16, whose result is rounded, and `elements` of E2M1."""

    stored: tuple[SourceArray, ...]
    work: float
    floats: float = 0.0
    elements: float = 0.0

    def work_on(self, chip: Architecture) -> float:
        """About how many instructions an element takes on a chip."""
        pairs = chip.wide_slots == 1
        if chip.rounds_to_bfloat:
            rounding = _ROUNDED
        else:
            rounding = _ROUNDED_BY_FLOATS if pairs else _ROUNDED_BY_BITS
        floats = self.floats / (2 if pairs else 1) + (rounding if self.floats else 0.0)
        converts = chip.name in ELEMENT_TYPES[_E2M1].chips
        return self.work + floats + self.elements * (_ELEMENT if converts else _ELEMENT_BY_TABLE)

    @property
    def group(self) -> int:
        """How many neighbours along K share all arrays but the largest, such as scales: a power of
        two, since steps along K are."""
        _, *others = sorted((each.per_k for each in self.stored), reverse=True)
        together = max(1, round(1 / others[0])) if others else 1
        return together & -together


def prologue_of(
    function: PrimFunc, factor: TensorLoad, rows: Sequence[IterVar], along: Sequence[IterVar]
) -> Prologue | None:
    """What an operand is made of, whose element is loaded so; None if an argument has it as it is.

    `rows` and `along` are the axes of its rows and of K. Arrays that do not change along K are left
    out.
    """
    value = _computed(function, factor)
    if isinstance(value, TensorLoad):
        return None
    arrays: dict[int, SourceArray] = {}
    rates: dict[str, float] = {}
    for load in loads(value):
        each, key = _stored(load, rows, along), load.source.__chandle__()
        rates[str(load)] = 0.0 if each is None else each.per_k
        if each is not None and (key not in arrays or each.k_bytes > arrays[key].k_bytes):
            arrays[key] = each
    counts = _operations(value, lambda load: rates[str(load)], along[-1].var)
    return Prologue(tuple(arrays.values()), *counts)


def _computed(function: PrimFunc, load: TensorLoad) -> Expr:
    """An element in terms of arguments, through the blocks that compute it."""
    if any(load.source.same_as(parameter) for parameter in function.params):
        return load
    if (computed := computed_load(function, load)) is None:
        return load
    value = substitute(*computed)
    return mapped(value, (TensorLoad, lambda inner: _computed(function, inner)))


def _stored(
    load: TensorLoad, rows: Sequence[IterVar], along: Sequence[IterVar]
) -> SourceArray | None:
    """The array of a load; None if it does not change along K. A place that is read from memory is
    another for each k."""
    size = bits_of(load.source.dtype) / 8
    try:
        of_rows, of_k = (_places(load, axes[-1].var) for axes in (rows, along))
    except NotNumbersError:
        return SourceArray(size, 1.0, 1.0, along_rows=False)
    (count_of_rows, row_step), (count_of_k, k_step) = of_rows, of_k
    if count_of_k == 1:
        return None
    return SourceArray(size, count_of_k / _FAR, count_of_rows / _FAR, 0 < row_step < k_step)


def _places(load: TensorLoad, axis: Var) -> tuple[int, float]:
    """How many places of an array there are along an axis, and how far one is from the next."""
    offset = offset_of(load.source, load.indices)
    values: dict[str, npt.ArrayLike] = {v.name: _SYMBOL for v in undefined_vars(offset)}
    values[axis.name] = np.arange(_FAR)
    found = np.unique(np.broadcast_to(numbers(offset, values), _FAR))
    return len(found), float(found[-1] - found[0]) / max(1, len(found) - 1)


def _operations(
    value: Expr, rate: Callable[[TensorLoad], float], along: Var
) -> tuple[float, float, float]:
    """About how many instructions an element takes, but for what says where it lies; and beside
    those operations on floats in place of bfloat16, and elements of E2M1.

    Halves are computed in pairs, and so are fields of a word (`small_integers`, `small_floats`).
    What is made of loads at some `rate`, places along K, is computed as often, such as a scale
    of a group; a field of a word is another for each element `along` K.
    """
    analyzer = Analyzer()
    floats = elements = 0.0

    def counted(node: Expr) -> tuple[float, float]:
        """Instructions, and how often the last of them is needed."""
        nonlocal floats, elements
        if isinstance(node, TensorLoad):
            return 0.0, max(_VECTOR, rate(node))
        if not isinstance(node, _ARITHMETIC):
            return 0.0, 0.0
        inner = [counted(each) for each in _operands(node)]
        often = max((each for _, each in inner), default=0.0)
        if isinstance(node, tirx.RShift | tirx.LShift) and along in undefined_vars(node.b):
            often = 1.0
        if is_made_of_bits(node, analyzer):
            elements += often
            return 0.0, often
        before = sum(instructions for instructions, _ in inner)
        if _is_field(node, "float16"):
            return before, often
        if _is_field(node, "bfloat16"):
            return (_OCTETS + 1) * often, often
        if not isinstance(node, tirx.Cast | Call) and str(node.ty.dtype) == "bfloat16":
            floats += often
            return before, often
        return before + often * (0.5 if _goes_in_pairs(node) else 1), often

    return counted(value)[0], floats, elements


def _operands(operation: Expr) -> list[Expr]:
    """What an operation is of, but for by how much it shifts."""
    if isinstance(operation, tirx.Cast):
        return [operation.value]
    if isinstance(operation, tirx.RShift | tirx.LShift):
        return [operation.a]
    if isinstance(operation, tirx.Select):
        return [operation.condition, operation.true_value, operation.false_value]
    if isinstance(operation, Call):
        return list(operation.args)
    return [operation.a, operation.b] if isinstance(operation, OfTwo) else []


def _is_field(operation: Expr, dtype: str) -> bool:
    """Whether it makes a number of a type of a field of a word. Of a float16 the mask puts in what
    is missing; a bfloat16 is converted from a byte."""
    if not isinstance(operation, tirx.Cast) or str(operation.ty.dtype) != dtype:
        return False
    return isinstance(operation.value, tirx.BitwiseAnd)


def _goes_in_pairs(operation: Expr) -> bool:
    if isinstance(operation, _BITWISE):
        return True
    return not isinstance(operation, tirx.Cast) and str(operation.ty.dtype) == "float16"
