"""Grouped products: rows that are sorted by group, each group with a matrix of its own.

    group[i] = sum over e of (ends[e] <= i)
    C[i, j] += A[i, k] * B[group[i], j, k]

Experts of a language model are such groups. Group e has the rows from the end of the one before it
to `ends[e]`, as PyTorch's `_grouped_mm` counts them; the last one has all that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import tvm_ffi
from tvm import te, tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, Expr, IterVar, PrimFunc

from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import walk
from mfmadsl.schedule.product.after_groups import AfterGroups, after_groups
from mfmadsl.schedule.product.described import plain_block
from mfmadsl.schedule.product.launch_symbols import with_launch_symbols
from mfmadsl.schedule.product.memory import UNKNOWN, Extent, Memory, argument_load, memory
from mfmadsl.schedule.product.nest import Nest, is_sum, line, loads, nests, same
from mfmadsl.schedule.product.prologue import Prologue, prologue_of
from mfmadsl.schedule.product.sum_of_products import sum_of_products, uses


@dataclass(frozen=True)
class Groups:
    """A product with a matrix for each group of rows, and what is computed of its result.

    `axes` are i, j and k. The nest `table` tells the group of each row by the rows at which groups
    end, and `after` what becomes of the result, if anything does.
    """

    function: PrimFunc
    nest: Nest
    axes: tuple[IterVar, IterVar, IterVar]
    table: Nest
    ends: Buffer
    after: AfterGroups | None

    @property
    def rows(self) -> Extent:
        """M: a number, or what a launch finds it to be."""
        extent = self.axes[0].dom.extent
        known = constant(extent)
        return extent if known is None else known

    @property
    def extents(self) -> tuple[int, int, int]:
        """The number of groups, N and K."""
        groups, n, k = (
            constant(extent)
            for extent in (self.ends.shape[0], *(axis.dom.extent for axis in self.axes[1:]))
        )
        assert groups is not None
        assert n is not None
        assert k is not None
        return groups, n, k


@dataclass(frozen=True)
class GroupedProduct(Groups):
    """A product of plain numbers of groups: `elements` are the loads of A and B."""

    elements: tuple[TensorLoad, TensorLoad]

    @property
    def types(self) -> tuple[str, str, str]:
        """The types of A, B and the sums."""
        a, b = (str(load.source.dtype) for load in self.elements)
        return a, b, str(self.nest.store.buffer.dtype)

    @property
    def memories(self) -> tuple[Memory, Memory]:
        """How A and B lie in memory."""
        i, j, k = self.axes
        a, b = (argument_load(self.function, load) for load in self.elements)
        return (
            UNKNOWN if a is None else memory(a, {"i": [i], "k": [k]}),
            UNKNOWN if b is None else memory(b, {"j": [j], "k": [k]}),
        )

    @property
    def prologue(self) -> Prologue | None:
        """What an element of B is computed of, such as the weights of experts; None of a matrix in
        memory."""
        _, j, k = self.axes
        first, *rest = self.elements[1].indices
        matrix = tirx.Var("group", str(first.ty.dtype))
        load = tirx.BufferLoad(self.elements[1].source, [matrix, *rest])
        return prologue_of(self.function, load, [j], [k])


def group_of_rows(ends: te.Tensor, rows: Extent) -> te.Tensor:
    """The group of each row: how many of the groups before the last one end at it or before."""
    e = te.reduce_axis((0, ends.shape[0] - 1), name="e")
    one, none = tirx.const(1, "int32"), tirx.const(0, "int32")

    def count(i: Expr) -> Expr:
        return te.sum(tirx.if_then_else(ends[e] <= i, one, none), axis=[e])

    return te.compute((rows,), count, name="GROUP")


def grouped_product(function: PrimFunc) -> GroupedProduct | None:
    """The first product of a function whose second factor is chosen by the group of a row.

    Raises ScheduleError, with the name of the block, for what no schedule is made of.
    """
    if sum_of_groups(function) is not None:
        function = with_launch_symbols(function)
        if (found := sum_of_groups(function)) is not None:
            return _found(function, *found)
    _refuse_other_tables([nest for nest in nests(function) if is_sum(nest)])
    return None


def sum_of_groups(function: PrimFunc) -> tuple[Nest, Nest] | None:
    """(the first sum of a function that reads what the group of a row chooses, the sum that tells
    the group of each row), if there are such."""
    sums = [nest for nest in nests(function) if is_sum(nest)]
    for table in filter(_is_table, sums):
        for nest in sums:
            if nest is not table and _chooses(nest, table):
                return nest, table
    return None


def _is_table(nest: Nest) -> bool:
    """Whether a block counts the ends that are at a row or before."""
    block = nest.block
    counted = [region.source for region in block.reads]
    if len(block.iter_vars) != 2 or len(counted) != 1 or len(counted[0].shape) != 1:
        return False
    groups, rows = constant(counted[0].shape[0]), block.iter_vars[0].dom.extent
    if groups is None or groups < 2 or str(counted[0].dtype) != "int32":
        return False
    ends = te.placeholder((groups,), name="ENDS", dtype="int32")
    (other,) = nests(te.create_prim_func([ends, group_of_rows(ends, rows)]))
    alike = tvm_ffi.structural_equal(plain_block(nest), plain_block(other), map_free_vars=True)
    return bool(alike) and isinstance(block.body, tirx.BufferStore)


def _chooses(nest: Nest, table: Nest) -> bool:
    """Whether an index of what a block reads is what the table says of a row."""
    group = table.store.buffer
    indices = (index for load in loads(nest.block.body) for index in load.indices)
    return any(load.source.same_as(group) for index in indices for load in loads(index))


def _refuse_other_tables(sums: list[Nest]) -> None:
    """Raises ScheduleError if one sum is an index of what another reads."""
    for table in sums:
        for nest in sums:
            if nest is not table and _chooses(nest, table):
                raise table.refusal(
                    f"sums the index of what `{nest.name}` reads, but not as a product of groups"
                    " does: sum(if_then_else(ends[e] <= i, 1, 0)) over all ends, of int32, but the"
                    " last; `grouped_matmul` writes it"
                )


def _found(function: PrimFunc, nest: Nest, table: Nest) -> GroupedProduct:
    product = sum_of_products(nest)
    group = table.store.buffer
    places = [axis for axis in nest.block.iter_vars if axis.iter_type == IterVar.DataPar]
    sums = [axis for axis in nest.block.iter_vars if axis.iter_type == IterVar.CommReduce]
    if len(places) != 2 or len(sums) != 1:
        raise nest.refusal("has other loops than rows, columns and k, and a matrix for each group")
    for a, b in ((product.first, product.second), (product.second, product.first)):
        for i, j in (places, places[::-1]):
            chosen = tirx.BufferLoad(group, [i.var])
            which, *rest = b.indices
            if not same(which, chosen) or uses(a, j.var) or not uses(a, i.var):
                continue
            if any(i.var.same_as(v) for index in rest for v in _variables(index)):
                continue
            if any(load.source.same_as(group) for index in a.indices for load in loads(index)):
                continue
            check_extents(nest, (i, j, sums[0]))
            after = after_groups(function, nest, table, (i, j))
            ends = ends_of(table)
            return GroupedProduct(function, nest, (i, j, sums[0]), table, ends, after, (a, b))
    raise nest.refusal(
        f"reads `{group.name}`, the group of a row, but is not C[row, column] += A[row, k]"
        f" * B[{group.name}[row], column, k]"
    )


def check_extents(nest: Nest, axes: tuple[IterVar, IterVar, IterVar]) -> None:
    """Raises ScheduleError unless N and K are numbers, and M one or of symbols of 32 bits."""
    rows, *others = (axis.dom.extent for axis in axes)
    if any(constant(extent) is None for extent in others):
        raise nest.refusal(
            "has a matrix for each group, and a number of columns or of k that is a symbol: only"
            " that of rows may be one"
        )
    if constant(rows) is None and str(rows.ty.dtype) != "int32":
        raise nest.refusal(
            f"has a matrix for each group, and `{line(rows)}` rows, of {rows.ty.dtype}: give the"
            " symbol 32 bits, as `te.var` does"
        )


def _variables(index: Expr) -> list[tirx.Var]:
    found: list[tirx.Var] = []
    walk(index, (tirx.Var, found.append))
    return found


def ends_of(table: Nest) -> Buffer:
    """The rows at which groups end, by which a table tells the group of each row."""
    (ends,) = (region.source for region in table.block.reads)
    return ends
