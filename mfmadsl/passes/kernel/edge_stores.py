"""Stores under a condition, of which the buffer's end drops those that are not wanted.

Past the end of its buffer a store through a descriptor does nothing. Behind a branch each store
would get one of its own, and its address anew. A row that is not there lies past the end already:

    if row < m: C[row * n + column] = x      ->      C, which ends at m * n, [row * n + column] = x
    if column < n: C[row * n + column] = x   ->      C[column < n ? row * n + column : the end] = x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import AttrStmt, BufferStore, Evaluate, Expr, For, IfThenElse, PrimFunc, SeqStmt, Stmt

from mfmadsl.passes.main_loop.moves.address import bytes_of
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.bounds import bind_loop, bind_thread
from mfmadsl.passes.tir.expression import (
    WORD,
    among,
    bits_of,
    conjuncts_of,
    constant,
    i32,
    loads_of,
    multiple_of,
    multiplied_out,
    narrowed,
    of_length,
    parted,
    scope_of,
    total,
    variables_of,
    widened,
)
from mfmadsl.passes.tir.linear import bounded, common_factor, largest, linear

_RECORDS = 2147483644
"""The bytes of the largest buffer that a descriptor describes here."""


def without_edge_branches(function: PrimFunc) -> PrimFunc:
    """The device function with stores of registers under a condition made unconditional.

    A store stays as it is where a lane's own place in the buffer has no bounds, or what is stored
    may not be there.
    """
    kernel = _Kernel()

    def attribute(node: AttrStmt) -> None:
        if node.attr_key == "thread_extent":
            bind_thread(kernel.analyzer, node)
            if str(node.node.thread_tag).startswith("blockIdx"):
                kernel.blocks.append(node.node.var)

    loop = partial(bind_loop, kernel.analyzer)
    tvm_ffi.structural_walk(function.body, [(AttrStmt, attribute), (For, loop)])
    body = tvm_ffi.structural_map(function.body, (IfThenElse, kernel.without_branch))
    return function.with_body(body)


@dataclass
class _Kernel:
    """What is known of a kernel's indices, and those that are the same in all threads."""

    analyzer: Analyzer = field(default_factory=Analyzer)
    blocks: list[tirx.Var] = field(default_factory=list)

    def without_branch(self, branch: IfThenElse) -> Stmt:
        """A branch with its stores made unconditional: where they are not wanted, past the end."""
        if branch.else_case is not None:
            return branch
        body, conditions = branch.then_case, conjuncts_of(branch.condition)
        stores = list(body.seq) if isinstance(body, SeqStmt) else [body]
        if not all(isinstance(each, BufferStore) for each in stores):
            return branch
        if not all(scope_of(load.source) == "local" for load in loads_of(branch.condition)):
            return branch
        found = [self._through_descriptor(each, conditions) for each in stores]
        if None in found:
            return branch
        return found[0] if len(found) == 1 else SeqStmt(found)

    def _through_descriptor(self, store: BufferStore, conditions: Sequence[Expr]) -> Stmt | None:
        """A store that does nothing where conditions do not hold; None if there is no such one."""
        if scope_of(store.buffer) != "global" or len(store.indices) != 1:
            return None
        index, lanes = _first(store.indices[0])
        dtype, bits = str(store.value.ty.dtype), bits_of(store.value.ty.dtype)
        size = bits // 8
        length = lanes * size
        if length not in device.KINDS or bits % 8 or dtype.startswith("bool") or loads_of(index):
            return None
        if length > WORD and multiple_of(index) * size % WORD:
            return None
        if not all(map(self._is_there, loads_of(store.value))):
            return None
        terms, kind = multiplied_out(index), str(index.ty.dtype)
        shared = [term for term in terms if self._is_shared(term)]
        own, ahead = parted(total([term for term in terms if not self._is_shared(term)], kind))
        bound = self.analyzer.const_int_bound(own)
        least, most = int(bound.min_value), int(bound.max_value)
        if least < 0 or ahead < 0 or (most + ahead) * size + length > _RECORDS:
            return None
        offset = narrowed(own) * size
        if asked := self._asked(conditions, store, index, lanes):
            offset = device.select(reduce(tirx.And, asked), offset, i32(device.PAST_THE_END))
        called = device.call(
            "int32", f"buffer.store.{device.KINDS[length]}", _words(store.value, length),
            store.buffer.data, total(shared, "int64") * size, bytes_of(store.buffer),
            offset + i32(ahead * size),
        )  # fmt: skip
        return Evaluate(called)

    def _asked(
        self, conditions: Sequence[Expr], store: BufferStore, index: Expr, lanes: int
    ) -> list[Expr]:
        """The conditions of a store but for the one, perhaps, that holds just where its place is
        inside the buffer if the others do."""
        for number, condition in enumerate(conditions):
            others = [*conditions[:number], *conditions[number + 1 :]]
            if self._is_end(condition, others, store, index, lanes):
                return others
        return list(conditions)

    def _is_end(
        self, condition: Expr, others: Sequence[Expr], store: BufferStore, index: Expr, lanes: int
    ) -> bool:
        """Whether a condition holds just where a place is inside a buffer, if others do."""
        if (sides := bounded(condition)) is None or loads_of(condition):
            return False
        row, limit = sides
        length = common_factor(linear(index), linear(row))
        if length is None or int(self.analyzer.const_int_bound(row).min_value) < 0:
            return False
        column = self.analyzer.simplify(index - row * length)
        if int(self.analyzer.const_int_bound(column).min_value) < 0:
            return False
        most = largest(column, others, self.analyzer)
        if most is None or most + lanes > length:
            return False
        (extent,) = store.buffer.shape
        return bool(self.analyzer.can_prove_equal(widened(extent), widened(limit) * length))

    def _is_shared(self, term: Expr) -> bool:
        """Whether a term is made of the workgroup's place."""
        found = variables_of(term)
        return bool(found) and all(among(variable, self.blocks) for variable in found)

    def _is_there(self, load: TensorLoad) -> bool:
        """Whether a load may happen where a condition does not hold."""
        if scope_of(load.source) == "local":
            return True
        extents = [constant(extent) for extent in load.source.shape]
        if len(extents) != 1 or len(load.indices) != 1 or extents[0] is None:
            return False
        index, lanes = _first(load.indices[0])
        bound = self.analyzer.const_int_bound(index)
        inside = int(bound.min_value) >= 0 and int(bound.max_value) + lanes <= extents[0]
        return inside and not loads_of(index)


def _first(index: Expr) -> tuple[Expr, int]:
    """The first of the elements that an index names, and how many there are, one after another."""
    if isinstance(index, tirx.Ramp) and constant(index.stride) == 1:
        return index.base, int(index.lanes)
    return index, 1


def _words(value: Expr, length: int) -> Expr:
    """The bits of a value, as the functions for buffers take them."""
    if length < WORD:
        return tirx.reinterpret(f"uint{8 * length}", value).astype("int32")
    return tirx.reinterpret(of_length("int32", length // WORD), value)
