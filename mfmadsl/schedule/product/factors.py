"""What a sum multiplies, through the blocks of float32 before it that compute its factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, Expr, PrimFunc, Var

from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.dataflow import fills
from mfmadsl.schedule.product.nest import Nest, check_plain, is_sum, loads, nests, substitute
from mfmadsl.schedule.product.sum_of_products import is_so_far

SUM = "float32"
"""The type of the sums, and of what is computed before them."""


@dataclass(frozen=True)
class SummedFactors:
    """The factors that a block sums the products of, and the blocks that compute them."""

    factors: tuple[Expr, ...]
    inside: tuple[Nest, ...]


def summed_factors(function: PrimFunc, nest: Nest) -> SummedFactors | None:
    """What a block of a function multiplies and adds up in float32, if it does that.

    Raises ScheduleError, with the name of the block, for a block before it with loops that none
    has.
    """
    store = nest.block.body
    if not isinstance(store, tirx.BufferStore) or str(store.buffer.dtype) != SUM:
        return None
    value = store.value
    if not isinstance(value, tirx.Add):
        return None
    added = [side for side in (value.a, value.b) if not is_so_far(side, store)]
    if len(added) != 1:
        return None
    inside: list[Nest] = []
    factors = tuple(_multiplied(_expanded(function, added[0], inside)))
    return SummedFactors(factors, tuple(inside))


def _multiplied(value: Expr) -> Iterator[Expr]:
    if isinstance(value, tirx.Mul):
        yield from _multiplied(value.a)
        yield from _multiplied(value.b)
    else:
        yield value


def _expanded(function: PrimFunc, value: Expr, inside: list[Nest]) -> Expr:
    """The value with what blocks of float32 compute in the place of their elements."""
    for _ in nests(function):  # each reads what others compute, at most all of them in a row
        # What refuses a block must not do so within TVM's walk, which would change its error.
        writers = [
            (load.source, nest)
            for load in loads(value)
            if str(load.source.dtype) == SUM
            and (nest := _writer(function, load.source)) is not None
        ]
        if not writers:
            break
        for _, nest in writers:
            if not any(nest.block.same_as(other.block) for other in inside):
                inside.append(nest)
        value = mapped(value, (TensorLoad, partial(_computed, writers)))
    return value


def _computed(writers: Sequence[tuple[Buffer, Nest]], load: TensorLoad) -> Expr:
    """What is computed for an element, or the element."""
    for buffer, nest in writers:
        if buffer.same_as(load.source):
            own = (index for index in nest.store.indices if isinstance(index, Var))
            return substitute(nest.store.value, dict(zip(own, load.indices, strict=True)))
    return tirx.BufferLoad(load.source, list(load.indices))


def _writer(function: PrimFunc, buffer: Buffer) -> Nest | None:
    """The plain element-wise block that writes a buffer, if just that does."""
    found = [
        nest
        for nest in nests(function)
        if any(region.source.same_as(buffer) for region in nest.block.writes)
    ]
    if len(found) != 1 or is_sum(found[0]):
        return None
    nest = found[0]
    if not isinstance(nest.block.body, tirx.BufferStore) or not nest.block.iter_vars:
        return None
    if any(load.source.same_as(buffer) for load in loads(nest.block)):
        return None
    own = list(nest.store.indices)
    if not all(isinstance(i, Var) for i in own) or len({i.__chandle__() for i in own}) != len(own):
        return None
    check_plain(nest)
    return nest if fills(nest) else None
