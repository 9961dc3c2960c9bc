"""Results that are made of groups of neighbouring columns of a product.

No schedule of element-wise blocks has them. So the product is scheduled with a stand-in for C,
which stores its elements, and the blocks that make the results take the place of that store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlockRealize
from tvm.tirx import Buffer, Expr, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence, statements, with_parts
from mfmadsl.schedule.product.added_nest import element_wise
from mfmadsl.schedule.product.dataflow import holds
from mfmadsl.schedule.product.described import axes_of
from mfmadsl.schedule.product.nest import Nest, loads, substitute

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
class Comparison:
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
class GroupOutput:
    """What is made of groups of `width` neighbouring columns of a product.

    `workload` is the product without it, which stores elements of `dtype` in `stand_in`, a
    parameter in the place of that of the first result. A group `knows` what its values are made of.
    """

    function: PrimFunc
    workload: PrimFunc
    stand_in: Buffer
    width: int
    dtype: str
    knows: Comparison | Pair
    outputs: tuple[Output, ...]


def group_columns(function: PrimFunc) -> int:
    """How many neighbouring columns of its product a wave has to store."""
    return int(function.attrs.get(COLUMNS_TOGETHER, 1)) if function.attrs else 1


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


def through(value: Expr, makers: Sequence[Nest]) -> Expr:
    """A value with what other blocks compute in the place of reading it."""

    def load(found: TensorLoad) -> Expr:
        for other in makers:
            if found.source.same_as(other.store.buffer):
                own = zip(other.store.indices, found.indices, strict=True)
                places = {v: index for v, index in own if isinstance(v, Var)}
                return through(substitute(other.store.value, places), makers)
        return found

    return tvm_ffi.structural_map(value, (TensorLoad, load))


def with_stand_in(
    function: PrimFunc, exact: Buffer, left_out: Sequence[Nest], result: Buffer, width: int
) -> tuple[PrimFunc, Buffer]:
    """(the function that stores elements in a stand-in, and not what blocks that are left out make;
    the stand-in, which is a parameter in the place of one of their results)."""
    stand_in = tirx.decl_buffer(exact.shape, _STAND_IN, result.name)
    kept: list[Stmt] = [
        each
        for each in statements(function)
        if not any(each.same_as(nest.statement) for nest in left_out)
    ]
    axes = list(axes_of(exact.shape))
    places = [axis.var for axis in axes]
    value = tirx.Cast(_STAND_IN, tirx.BufferLoad(exact, places))
    name = next(nest.name for nest in left_out if nest.store.buffer.same_as(result))
    kept.append(element_wise(name, axes, stand_in, places, value))
    made = [nest.store.buffer for nest in left_out]
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    allocated = [each for each in root.alloc_buffers if not holds(made, each)]
    parameters = [stand_in if p.same_as(result) else p for p in function.params]
    body = with_parts(root, body=in_sequence(kept), allocated=allocated)
    plain = PrimFunc(
        parameters, SBlockRealize([], True, body), function.ret_type, attrs=function.attrs
    )
    return plain.with_attr(COLUMNS_TOGETHER, width), stand_in
