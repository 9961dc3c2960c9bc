"""What becomes of the result of a product of groups: element-wise blocks, as one store of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.column_groups import (
    is_whole,
    made_beside,
    made_of,
    storing,
    through,
    with_what_they_read,
)
from mfmadsl.schedule.product.dataflow import accesses, holds
from mfmadsl.schedule.product.nest import Nest, line, loads, same, substitute


@dataclass(frozen=True)
class AfterGroups:
    """The `store` of an element at the places `axes`, of row and column, in one expression of the
    result and of arguments; the `blocks` that compute it together are replaced."""

    blocks: tuple[Nest, ...]
    axes: tuple[Var, Var]
    store: BufferStore

    def at(self, row: Expr, column: Expr, instead: dict[Buffer, Expr]) -> BufferStore:
        """The store for an element, with values in place of what is read of some buffers."""
        moved = substitute(self.store, dict(zip(self.axes, (row, column), strict=True)))

        def known(load: TensorLoad) -> Expr:
            return next((own for b, own in instead.items() if load.source.same_as(b)), load)

        value = mapped(moved.value, (TensorLoad, known))
        return BufferStore(moved.buffer, value, list(moved.indices))


def after_groups(
    function: PrimFunc, nest: Nest, table: Nest, places: tuple[IterVar, IterVar]
) -> AfterGroups | None:
    """What follows a product of groups, if anything does; `table` tells the group of each row.

    Raises ScheduleError, with the name of the block, for what is no store of one element.
    """
    result, group = nest.store.buffer, table.store.buffer
    every = storing(function)
    made = made_of(every, result)
    mine = [each.statement for each in (nest, table, *made)]
    for each in every:
        if not _is_among(each.statement, mine) and _reads(each, group):
            raise each.refusal(
                f"reads `{group.name}`, too, which only the product and what follows it may"
            )
    if not made:
        if not holds(function.params, result):
            raise nest.refusal(f"computes `{result.name}`, which is no parameter and is not read")
        return None
    both = [result, *(each.store.buffer for each in made)]
    for access in accesses(function):
        others = any(holds(both, buffer) for buffer in access.reads)
        if others and not _is_among(access.statement, mine):
            raise ScheduleError(
                f"{access.name} reads what a product of groups makes, and is no element-wise block"
            )
    for each in made:
        if not is_whole(each):
            raise each.refusal(
                "follows a product of groups: what does has to compute each element by itself, of"
                " one place of the product"
            )
    results = [buffer for buffer in both if holds(function.params, buffer)]
    if len(results) != 1 or not results[0].same_as(both[-1]):
        raise made[-1].refusal(
            "follows a product of groups: what does has to end in one parameter; write another"
            " result in a function of its own"
        )
    last = made[-1]
    if len(last.block.iter_vars) != len(places):
        raise last.refusal("follows a product of groups, and has other axes than it")
    row, column = own = (last.variables[0], last.variables[1])
    makers = [*made[:-1], *made_beside(every, result)]
    store = BufferStore(
        last.store.buffer, through(last.store.value, makers), list(last.store.indices)
    )
    for load in loads(store):
        if load.source.same_as(result) and not same(list(load.indices), [row, column]):
            raise last.refusal(
                f"reads `{line(load)}`: it may read the element of its place, or make something of"
                " columns 2 * g and 2 * g + 1 as `gated` does, and compare that in groups of a row"
                " of several"
            )
        if load.source.same_as(group) and not same(list(load.indices), [row]):
            raise last.refusal(f"reads `{line(load)}`: it may read the group of its row")
    own_statements = [nest.statement, table.statement]
    blocks = with_what_they_read(function, made, result)
    replaced = tuple(b for b in blocks if not _is_among(b.statement, own_statements))
    return AfterGroups(replaced, own, store)


def _reads(nest: Nest, buffer: Buffer) -> bool:
    return any(load.source.same_as(buffer) for load in loads(nest.block))


def _is_among(statement: Stmt, several: Sequence[Stmt]) -> bool:
    return any(statement.same_as(each) for each in several)
