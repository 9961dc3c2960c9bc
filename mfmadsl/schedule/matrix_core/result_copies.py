"""Copies of a product's result, made by the lanes that store it."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Range
from tvm.s_tir import SBlock
from tvm.sym import Analyzer
from tvm.tirx import Bind, Buffer, BufferRegion, BufferStore, Expr, IfThenElse, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence
from mfmadsl.passes.tir.expression import substitute
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.nest import is_number, loads
from mfmadsl.schedule.product.result_copies import ResultCopies, ResultCopy, flat_place


def with_result_copies(function: PrimFunc, copies: ResultCopies) -> PrimFunc:
    """The scheduled workload of copies, in which each element goes to all of its places.

    Raises ScheduleError where a kernel reads again what it stores.
    """
    own = dict(zip(copies.workload.params, function.params, strict=True))
    stores = _Stores(own[copies.result], copies.copies)
    if any(load.source.same_as(stores.result) for load in loads(function.body)):
        raise ScheduleError(
            f"`{copies.result.name}` is read where it is stored: make its copies in a function of"
            " their own"
        )
    body = mapped(function.body, (BufferStore, stores.together), (SBlock, stores.around))
    parameters = [own.get(each, each) for each in copies.function.params]
    return PrimFunc(parameters, body, function.ret_type, attrs=function.attrs)


@dataclass(frozen=True)
class _Stores:
    """Statements with the copies of what they store of the result."""

    result: Buffer
    copies: tuple[ResultCopy, ...]

    def together(self, store: BufferStore) -> Stmt:
        """A store, and those of the copies if it stores an element of the result."""
        if not store.buffer.same_as(self.result):
            return store
        value = Var("stored", store.value.ty)
        place = flat_place(store.indices, self.result.shape)
        assert place is not None  # as it was in the workload
        copied = [_copied(each, place, value) for each in self.copies]
        return in_sequence(
            [Bind(value, store.value), BufferStore(self.result, value, store.indices), *copied]
        )

    def around(self, block: SBlock) -> SBlock:
        """A block, which says that it writes the copies if it writes the result."""
        if not any(region.source.same_as(self.result) for region in block.writes):
            return block
        targets = [
            BufferRegion(each.target, [Range(0, extent) for extent in each.target.shape])
            for each in self.copies
        ]
        return SBlock(
            block.iter_vars, block.reads, [*block.writes, *targets], block.name_hint, block.body,
            block.init, block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip


def _copied(copy: ResultCopy, place: Expr, value: Expr) -> Stmt:
    """The store of a value into the target, if the element at a place is one that is copied."""
    left = place - copy.first
    conditions: list[Expr] = [left >= 0]
    at: dict[Var, Expr] = {}
    for axis in copy.axes:
        turn = tirx.floordiv(left, axis.stride)
        conditions.append(turn < axis.extent.astype("int64"))
        at[axis.variable] = turn.astype(str(axis.variable.ty.dtype))
        left = tirx.floormod(left, axis.stride)
    conditions.append(tirx.EQ(left, tirx.IntImm("int64", 0)))
    analyzer = Analyzer()
    simple = [analyzer.simplify(each) for each in conditions]
    needed = [each for each in simple if not is_number(each, 1)]
    store = BufferStore(copy.target, value, [substitute(index, at) for index in copy.place])
    return IfThenElse(tirx.all(*needed), store, None) if needed else store
