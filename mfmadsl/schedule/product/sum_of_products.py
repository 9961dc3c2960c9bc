"""A block that adds up products: which loops are rows, columns, sum and batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir.analysis import get_sblock_access_region
from tvm.tirx import BufferRegion, BufferStore, Expr, IterVar, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.nest import (
    Nest,
    buffers,
    check_plain,
    is_number,
    is_sum,
    line,
    loads,
    nests,
    same,
    writes_apart,
)


@dataclass(frozen=True)
class SumOfProducts:
    """C += first * second, where `store` is C's element.

    `kinds` says of each axis of the block, outermost first, what it is: "i" and "j" walk over the
    first's and the second's places, "k" is summed over, and "s" is a batch.
    """

    nest: Nest
    store: BufferStore
    first: TensorLoad
    second: TensorLoad
    kinds: tuple[str, ...]

    @property
    def factors(self) -> tuple[Expr, Expr]:
        """Both factors, with their casts."""
        value = self.store.value
        assert isinstance(value, tirx.Add)
        product = value.b if isinstance(value.b, tirx.Mul) else value.a
        assert isinstance(product, tirx.Mul)
        return product.a, product.b

    @property
    def adds_to_sum(self) -> bool:
        """Whether the sum so far stands before the product, as instructions have it."""
        value = self.store.value
        return isinstance(value, tirx.Add) and isinstance(value.b, tirx.Mul)

    @property
    def sum_type(self) -> str:
        """The type that products are added up in."""
        return str(self.store.buffer.dtype)

    def some_batches(self, factor: TensorLoad) -> list[IterVar]:
        """The batch axes, if a factor's places depend on some of them and not on others."""
        axes = [axis for axis in self.axes("s") if not is_number(axis.dom.extent, 1)]
        used = [axis for axis in axes if uses(factor, axis.var)]
        return axes if 0 < len(used) < len(axes) else []

    def axes(self, kind: str) -> list[IterVar]:
        """The axes of one kind, outermost first."""
        both = zip(self.nest.block.iter_vars, self.kinds, strict=True)
        return [axis for axis, found in both if found == kind]


def product_nest(function: PrimFunc, block: str | None = None) -> Nest:
    """The nest of a block, or without its name that of the only one that sums."""
    found = [
        nest for nest in nests(function) if (is_sum(nest) if block is None else nest.name == block)
    ]
    if len(found) == 1:
        return found[0]
    if block is not None:
        raise ScheduleError(f"workload: {len(found)} blocks of their own are called `{block}`")
    names = ", ".join(f"`{nest.name}`" for nest in found) or "none"
    raise ScheduleError(
        f"workload: one block must be a reduction, the matrix product; there are: {names}"
    )


def sum_of_products(nest: Nest) -> SumOfProducts:
    """What a block adds up, or ScheduleError with its name and why it is no product of matrices."""
    check_plain(nest)
    store = nest.block.body
    if not isinstance(store, tirx.BufferStore):
        raise nest.refusal("is no sum of products: C[i, j] = C[i, j] + A * B")
    if not is_sum(nest):
        raise nest.refusal("sums over no loop")
    check_init(nest, store)
    value = store.value
    if not isinstance(value, tirx.Add):
        raise nest.refusal("is no sum of products: C[i, j] = C[i, j] + A * B")
    sums = [side for side in (value.a, value.b) if is_so_far(side, store)]
    added = [side for side in (value.a, value.b) if not is_so_far(side, store)]
    if len(sums) != 1 or len(added) != 1:
        raise nest.refusal("is no sum of products: C[i, j] = C[i, j] + A * B")
    product = added[0]
    if not isinstance(product, tirx.Mul):
        raise nest.refusal(f"adds `{line(product)}`, which is no product of two elements")
    first, second = (_factor(nest, factor, store) for factor in (product.a, product.b))
    for use in (first, second, store):
        _check_indices(nest, use)
    if not writes_apart(nest, store):
        raise nest.refusal(f"may write one place of `{store.buffer.name}` several times")
    _check_regions(nest)
    kinds = [_kind(nest, axis, first, second, store) for axis in nest.block.iter_vars]
    return SumOfProducts(nest, store, first, second, _that_fuse(nest, kinds))


def check_init(nest: Nest, store: BufferStore) -> None:
    """Refuse a sum that does not start from zero at its own place."""
    init = nest.block.init
    if init is None:
        raise nest.refusal("adds to what its result held before: it must start its sum from zero")
    if not (
        isinstance(init, tirx.BufferStore)
        and init.buffer.same_as(store.buffer)
        and len(init.indices) == len(store.indices)
        and all(same(a, b) for a, b in zip(init.indices, store.indices, strict=True))
        and is_number(uncast(init.value), 0)
    ):
        raise nest.refusal("does not start its sum from zero")


def is_so_far(side: Expr, store: BufferStore) -> bool:
    """Whether this is the sum so far."""
    return (
        isinstance(side, TensorLoad)
        and side.source.same_as(store.buffer)
        and all(same(a, b) for a, b in zip(side.indices, store.indices, strict=True))
    )


def _factor(nest: Nest, factor: Expr, store: BufferStore) -> TensorLoad:
    """The element that a factor is, cast to the sum's type at most."""
    element = factor.value if isinstance(factor, tirx.Cast) else factor
    if not isinstance(element, TensorLoad):
        raise nest.refusal(f"multiplies `{line(factor)}`, which is no element of a buffer")
    if element.source.same_as(store.buffer):
        raise nest.refusal(f"multiplies by `{line(element)}`, an element of its own result")
    return element


def _check_indices(nest: Nest, use: TensorLoad | BufferStore) -> None:
    own = use.source if isinstance(use, TensorLoad) else use.buffer
    for index in use.indices:
        if isinstance(index, tirx.Ramp | tirx.Broadcast):
            raise nest.refusal(f"reads or writes several elements of `{own.name}` at once")
        inner = loads(index)
        if isinstance(use, tirx.BufferStore) and inner:
            raise nest.refusal(f"writes `{own.name}` at `{line(index)}`, which depends on data")
        if any(load.source.same_as(nest.store.buffer) for load in inner):
            raise nest.refusal(f"reads `{own.name}` at a place that its own result says")


def _check_regions(nest: Nest) -> None:
    """What the block declares to access is what schedules go by: it must be what it accesses."""
    block = nest.block
    declared = [region.source for region in (*block.reads, *block.writes)]
    outside = [*declared, *buffers([nest.store]), nest.store.buffer]
    found = get_sblock_access_region(block, {buffer: buffer for buffer in outside})
    for said, actual in zip((block.reads, block.writes), found, strict=False):
        if not (_all_in(said, actual) and _all_in(actual, said)):
            raise nest.refusal("declares to read or write something else than it does")


def _all_in(some: Iterable[BufferRegion], regions: Iterable[BufferRegion]) -> bool:
    return all(any(same(one, other) for other in regions) for one in some)


def _that_fuse(nest: Nest, kinds: list[str]) -> tuple[str, ...]:
    """What each axis becomes, so that TVM can fuse those of a kind.

    It cannot prove that a number of loops of a variable length cover the product of both. So an
    axis of rows or columns of known length outside of one of unknown length is a batch. So is one
    of unknown length outside of an even number: TVM divides by two what it is to prove of tiles
    that cover so many, and no longer knows them for what they are.
    """
    lengths = [
        int(axis.dom.extent) if isinstance(axis.dom.extent, tirx.IntImm) else None
        for axis in nest.block.iter_vars
    ]
    found = list(kinds)
    for n, kind in enumerate(kinds):
        inside = [length for k, length in zip(kinds[n + 1 :], lengths[n + 1 :], strict=True)
                  if k == kind]  # fmt: skip
        even = any(length is not None and length % 2 == 0 for length in inside)
        if kind in "ij" and (even if lengths[n] is None else None in inside):
            found[n] = "s"
    return tuple(found)


def _kind(
    nest: Nest, axis: IterVar, first: TensorLoad, second: TensorLoad, store: BufferStore
) -> str:
    inside = uses(first, axis.var), uses(second, axis.var), uses(store, axis.var)
    unit = is_number(axis.dom.extent, 1)
    if axis.iter_type == IterVar.CommReduce:
        if inside[2]:
            raise nest.refusal(f"sums over `{axis.var.name}`, and writes a place for each of it")
        if not unit and inside != (True, True, False):
            raise nest.refusal(f"sums over `{axis.var.name}`, which not both factors depend on")
        return "k"
    if not inside[2] and not unit:
        raise nest.refusal(f"writes the same place for each `{axis.var.name}`")
    return {(True, False, True): "i", (False, True, True): "j"}.get(inside, "s")


def uses(use: TensorLoad | BufferStore, variable: Var) -> bool:
    """Whether a load or store is at a place that depends on the variable."""
    return any(variable in undefined_vars(index) for index in use.indices)


def uncast(expression: Expr) -> Expr:
    """The expression without the casts around it."""
    while isinstance(expression, tirx.Cast):
        expression = expression.value
    return expression
