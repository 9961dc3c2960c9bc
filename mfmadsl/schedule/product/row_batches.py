"""Rows of several batches one behind the other: a block that says which batch each row is in.

`starts` says where each batch begins, and at last where the last one ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import tvm_ffi
from tvm import te, tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, Expr, Var

from mfmadsl.passes.tir.expression import choice_of
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.nest import is_number, same

Node = TypeVar("Node", bound=tvm_ffi.Object)


def batch_of_rows(starts: te.Tensor, rows: Expr) -> te.Tensor:
    """The batch of each row: how many of the batches before the last one end at it or before."""
    b = te.reduce_axis((0, starts.shape[0] - 2), name="b")
    one, none = tirx.const(1, "int32"), tirx.const(0, "int32")

    def count(row: Expr) -> Expr:
        return te.sum(tirx.if_then_else(starts[b + 1] <= row, one, none), axis=[b])

    return te.compute((rows,), count, name="BATCH")


@dataclass(frozen=True)
class RowBatches:
    """A buffer that has the batch of each row, and where the batches begin."""

    buffer: Buffer
    starts: Buffer

    def named_in(self, value: Node, batch: Var, rows: list[Expr]) -> Node:
        """A value with a variable in place of the batch of a row, which is added to `rows`."""

        def load(found: TensorLoad) -> Expr:
            if not found.source.same_as(self.buffer):
                return found
            rows.extend(found.indices)
            return batch

        return mapped(value, (TensorLoad, load))


def row_batches(buffer: Buffer, row: Expr, term: Expr, over: tuple[Var, Expr]) -> RowBatches | None:
    """What a sum over (an axis, its extent) is, if it counts as `batch_of_rows` does; else None.

    `term` is what is summed up for a `row` of the buffer.
    """
    choice = choice_of(term)
    if choice is None or not is_number(choice[1], 1) or not is_number(choice[2], 0):
        return None
    condition = choice[0]
    if not isinstance(condition, tirx.LE) or not same(_as_it_is(condition.b), row):
        return None
    end = _as_it_is(condition.a)
    if not isinstance(end, TensorLoad) or len(end.source.shape) != 1:
        return None
    if str(end.source.dtype) not in ("int32", "int64"):
        return None
    (place,), (length,), (axis, extent) = end.indices, end.source.shape, over
    simplify = Analyzer().simplify
    if not is_number(simplify(place - axis), 1) or str(buffer.dtype) != "int32":
        return None
    left = simplify(length.astype("int64") - extent.astype("int64"))
    return RowBatches(buffer, end.source) if is_number(left, 2) else None


def _as_it_is(number: Expr) -> Expr:
    """A number without a cast that keeps all of it."""
    if isinstance(number, tirx.Cast) and str(number.ty.dtype) == "int64":
        return number.value if str(number.value.ty.dtype) == "int32" else number
    return number
