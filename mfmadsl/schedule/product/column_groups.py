"""Results that are made of groups of neighbouring columns of a product.

No schedule of element-wise blocks has them. So the product is scheduled with a stand-in for C,
which stores its elements, and the blocks that make the results take the place of that store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlockRealize
from tvm.tirx import Buffer, BufferStore, Expr, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence, statements, with_parts
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.added_nest import element_wise
from mfmadsl.schedule.product.dataflow import accesses, check_element_wise, fills, holds
from mfmadsl.schedule.product.described import axes_of
from mfmadsl.schedule.product.nest import Nest, loads, nests, substitute

COLUMNS_TOGETHER = "mfmadsl.columns_together"
"""The attribute of a function of which a wave has to store so many neighbouring columns."""

_STAND_IN = "uint8"

Choice: TypeAlias = type[tirx.Max] | type[tirx.Min]


@dataclass(frozen=True)
class Output:
    """A result: its value at the places `at`, each of one element, or of a whole group.

    Of several `values` each is that of another column of a group.
    """

    buffer: Buffer
    at: tuple[Expr, ...]
    values: tuple[Expr, ...]
    of_group: bool


@dataclass(frozen=True)
class ComparedGroup:
    """A group's value is `first` or the `choice` of that and what is `compared` of its elements.

    `element` and `group` stand in this, and in the outputs' values, for what is known by then.
    """

    choice: Choice
    first: Expr
    compared: Expr
    element: Var
    group: Var


@dataclass(frozen=True)
class Pair:
    """The two elements of a group, which outputs' values are made of."""

    elements: tuple[Var, Var]


@dataclass(frozen=True)
class PairValue:
    """What is made of each pair of columns, such as a gated activation: a `value` of `dtype` of the
    two `elements`, at the place `at` among such values."""

    elements: tuple[Var, Var]
    at: tuple[Expr, ...]
    value: Expr
    dtype: str


@dataclass(frozen=True)
class GroupOutput:
    """What is made of groups of `width` neighbouring columns of a product.

    `workload` is the product without it, which stores elements of `dtype` in `stand_in`, a
    parameter in the place of that of the first result. A group `knows` what its values are made of:
    of its elements, or of what each of its `pairs` of elements makes.
    """

    function: PrimFunc
    workload: PrimFunc
    stand_in: Buffer
    width: int
    dtype: str
    knows: ComparedGroup | Pair
    outputs: tuple[Output, ...]
    pairs: PairValue | None = None


def group_columns(function: PrimFunc) -> int:
    """How many neighbouring columns of its product a wave has to store."""
    return int(function.attrs.get(COLUMNS_TOGETHER, 1)) if function.attrs else 1


def storing(function: PrimFunc) -> list[Nest]:
    """The blocks of a function that store one element each."""
    return [nest for nest in nests(function) if isinstance(nest.block.body, BufferStore)]


def reads_any(nest: Nest, several: Iterable[Buffer]) -> bool:
    """Whether a block reads one of several buffers."""
    return any(holds(several, load.source) for load in loads(nest.block.body))


def made_of(every: Sequence[Nest], source: Buffer) -> list[Nest]:
    """The blocks that read a buffer, or what is made of it."""
    made = [source]
    for nest in every:
        if reads_any(nest, made) and not holds(made, nest.store.buffer):
            made.append(nest.store.buffer)
    return [nest for nest in every if holds(made[1:], nest.store.buffer)]


def is_whole(nest: Nest) -> bool:
    """Whether a block computes each element of its buffer by itself."""
    try:
        check_element_wise(nest)
    except ScheduleError:
        return False
    return fills(nest)


def made_beside(every: Sequence[Nest], source: Buffer) -> list[Nest]:
    """The blocks that compute each element of a buffer by itself, of others than `source`: of a
    bias, say."""
    behind = made_of(every, source)
    return [
        nest
        for nest in every
        if not any(nest is other for other in behind)
        and not nest.store.buffer.same_as(source)
        and is_whole(nest)
    ]


def reads_parameters(function: PrimFunc, values: Iterable[Expr]) -> bool:
    """Whether values are made of a function's parameters alone, and of what is known by then."""
    return all(holds(function.params, load.source) for value in values for load in loads(value))


def through(value: Expr, makers: Sequence[Nest]) -> Expr:
    """A value with what other blocks compute in the place of reading it."""

    def load(found: TensorLoad) -> Expr:
        for other in makers:
            if found.source.same_as(other.store.buffer):
                own = zip(other.store.indices, found.indices, strict=True)
                places = {v: index for v, index in own if isinstance(v, Var)}
                return through(substitute(other.store.value, places), makers)
        return found

    return mapped(value, (TensorLoad, load))


def with_stand_in(
    function: PrimFunc, exact: Buffer, left_out: Sequence[Nest], result: Buffer, width: int
) -> tuple[PrimFunc, Buffer]:
    """(the function that stores elements in a stand-in, and not what blocks that are left out make;
    the stand-in, which is a parameter in the place of one of their results)."""
    stand_in = tirx.decl_buffer(exact.shape, _STAND_IN, result.name)
    unread = with_what_they_read(function, left_out, exact)
    kept: list[Stmt] = [each for each in statements(function) if not _is_of(each, unread)]
    axes = list(axes_of(exact.shape))
    places = [axis.var for axis in axes]
    value = tirx.Cast(_STAND_IN, tirx.BufferLoad(exact, places))
    name = next(nest.name for nest in left_out if nest.store.buffer.same_as(result))
    kept.append(element_wise(name, axes, stand_in, places, value))
    made = [nest.store.buffer for nest in unread]
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    allocated = [each for each in root.alloc_buffers if not holds(made, each)]
    parameters = [stand_in if p.same_as(result) else p for p in function.params]
    body = with_parts(root, body=in_sequence(kept), allocated=allocated)
    plain = PrimFunc(
        parameters, SBlockRealize([], True, body), function.ret_type, attrs=function.attrs
    )
    return plain.with_attr(COLUMNS_TOGETHER, width), stand_in


def with_what_they_read(function: PrimFunc, left_out: Sequence[Nest], exact: Buffer) -> list[Nest]:
    """Blocks, and the element-wise ones that make what they alone read beside the elements."""
    found = list(left_out)
    others = accesses(function)
    for nest in reversed(storing(function)):
        readers = [each.statement for each in others if holds(each.reads, nest.store.buffer)]
        if (
            readers
            and is_whole(nest)
            and not holds((*function.params, exact), nest.store.buffer)
            and all(_is_of(each, found) for each in readers)
        ):
            found.append(nest)
    return found


def _is_of(statement: Stmt, several: Sequence[Nest]) -> bool:
    return any(statement.same_as(nest.statement) for nest in several)
