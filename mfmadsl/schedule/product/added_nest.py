"""Nests of loops around a block, made of expressions: what a function gets beside its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.analysis import get_sblock_access_region
from tvm.tirx import Buffer, BufferStore, Expr, For, IterVar, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.nest import Nest, buffers, substitute


def buffer_of(name: str, axes: Sequence[IterVar], dtype: str) -> tuple[Buffer, list[Expr]]:
    """A buffer with an element for each place of the axes, and the indices of that."""
    if not axes:
        return tirx.decl_buffer([1], dtype, name), [tirx.IntImm("int32", 0)]
    shape = [axis.dom.extent for axis in axes]
    return tirx.decl_buffer(shape, dtype, name), [axis.var for axis in axes]


def element_wise(
    name: str, axes: Sequence[IterVar], buffer: Buffer, indices: Sequence[Expr], value: Expr
) -> Stmt:
    """A nest over the axes that stores a value at its place."""
    loops, own = [], []
    for axis in axes:
        kind = axis.dom.extent.ty
        loops.append(tirx.Var(axis.var.name, kind))
        own.append(IterVar(axis.dom, tirx.Var(f"v_{axis.var.name}", kind), IterVar.DataPar))
    renamed = {axis.var: new.var for axis, new in zip(axes, own, strict=True)}
    store = substitute(tirx.BufferStore(buffer, value, list(indices)), renamed)
    return looped(loops, axes, SBlockRealize(loops, True, block_of(name, own, store, None, {})))


def looped(loops: Sequence[Var], axes: Sequence[IterVar], inner: Stmt) -> Stmt:
    """A statement in loops over the axes."""
    for loop, axis in zip(reversed(loops), reversed(axes), strict=True):
        inner = tirx.For(loop, 0, axis.dom.extent, tirx.ForKind.SERIAL, inner)
    return inner


def block_of(
    name: str,
    axes: list[IterVar],
    store: BufferStore,
    init: Stmt | None,
    annotations: Mapping[str, object],
) -> SBlock:
    """A block that accesses what its statements do."""
    known = {buffer: buffer for buffer in (store.buffer, *buffers([store]))}
    bare = SBlock(axes, [], [], name, store, init, annotations=annotations)
    reads, writes = get_sblock_access_region(bare, known)[:2]
    return SBlock(axes, reads, writes, name, store, init, annotations=annotations)


def again(loops: Sequence[For], inner: Stmt) -> Stmt:
    """Another statement in loops that there are."""
    for loop in reversed(loops):
        inner = tirx.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, inner, loop.thread_binding,
            loop.annotations,
        )  # fmt: skip
    return inner


def renamed(nest: Nest, name: str, own: Mapping[Buffer, Buffer]) -> Stmt:
    """The nest with its block under another name, and other buffers in place of some."""
    realize = SBlockRealize(list(nest.realize.iter_values), True, renamed_block(nest, name, own))
    return again(nest.loops, realize)


def renamed_block(nest: Nest, name: str, own: Mapping[Buffer, Buffer]) -> SBlock:
    """The block of a nest under another name, with other buffers in place of some."""

    def load(found: TensorLoad) -> Expr:
        return tirx.BufferLoad(own.get(found.source, found.source), list(found.indices))

    def store(found: BufferStore) -> BufferStore:
        value = mapped(found.value, (TensorLoad, load))
        return BufferStore(own.get(found.buffer, found.buffer), value, list(found.indices))

    init = nest.block.init
    assert init is None or isinstance(init, BufferStore)
    first = None if init is None else store(init)
    return block_of(name, list(nest.block.iter_vars), store(nest.store), first, {})


def replaced(
    function: PrimFunc, nest: Nest, instead: Sequence[Stmt], allocated: Sequence[Buffer]
) -> PrimFunc:
    """The function with other statements in place of a nest."""
    new: list[Stmt] = []
    for statement in statements(function):
        found = statement.same_as(nest.statement)
        new += instead if found else [statement]
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    both = [*root.alloc_buffers, *allocated]
    return with_root(function, with_parts(root, body=in_sequence(new), allocated=both))


def unique(name: str, taken: set[str]) -> str:
    """The name, with a number if there is such a block."""
    number, tried = 1, name
    while tried in taken:
        number, tried = number + 1, f"{name}_{number}"
    taken.add(tried)
    return tried
