"""Symbols in the extents of what a kernel accesses, which its statements may not name.

TVM passes a kernel what its statements use. The size of a buffer, which loads are checked against,
is made of its extents: where rows are a part of a matrix, no loop has that of the matrix.
"""

from __future__ import annotations

from collections.abc import Collection

from tvm.ir import TensorLoad
from tvm.tirx import AttrStmt, Buffer, BufferStore, Evaluate, PrimFunc, SeqStmt, Stmt, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.tir.expression import among, variables_of
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk


def use_extents(function: PrimFunc) -> PrimFunc:
    """The function, each of whose kernels begins with statements that use such symbols."""
    extents = [extent for each in function.params for extent in getattr(each, "shape", ())]
    symbols = [symbol for extent in extents for symbol in variables_of(extent)]

    def kernel(node: AttrStmt) -> AttrStmt:
        body = node.body
        inner = isinstance(body, AttrStmt) and body.attr_key == "thread_extent"
        if node.attr_key != "thread_extent" or inner:
            return node
        uses: list[Stmt] = [Evaluate(symbol) for symbol in _unused(body, symbols)]
        if not uses:
            return node
        return AttrStmt(node.node, node.attr_key, node.value, SeqStmt([*uses, body]))

    return with_body(function, mapped(function.body, (AttrStmt, kernel)))


def without_uses(function: PrimFunc) -> PrimFunc:
    """The function without those statements, once the kernel has its parameters."""

    def sequence(node: SeqStmt) -> Stmt:
        left = [each for each in node.seq if not _is_use(each)]
        return node if len(left) == len(node.seq) else left[0] if len(left) == 1 else SeqStmt(left)

    return with_body(function, mapped(function.body, (SeqStmt, sequence)))


def _is_use(statement: Stmt) -> bool:
    return isinstance(statement, Evaluate) and isinstance(statement.value, Var)


def _unused(body: Stmt, symbols: Collection[Var]) -> list[Var]:
    """Those of the symbols in extents of what the body accesses that it does not name."""
    buffers: list[Buffer] = []
    walk(body, (TensorLoad, lambda load: buffers.append(load.source)))
    walk(body, (BufferStore, lambda store: buffers.append(store.buffer)))
    wanted = [v for buffer in buffers for extent in buffer.shape for v in variables_of(extent)]
    named = undefined_vars(body, [])
    found: list[Var] = []
    for symbol in symbols:
        if among(symbol, wanted) and not among(symbol, [*named, *found]):
            found.append(symbol)
    return found
