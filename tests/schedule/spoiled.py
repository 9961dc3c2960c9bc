"""Functions changed into ones that are no products, or that a schedule easily gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm import s_tir, tirx
from tvm.tirx import PrimFunc

Change = Callable[[Any], Any]


def _mapped(function: PrimFunc, kind: Any, change: Change) -> PrimFunc:
    return function.with_body(tvm_ffi.structural_map(function.body, (kind, change)))


def _named(realize: Any, name: str) -> bool:
    return str(realize.block.name_hint) == name


def _block(block: Any, body: Any = None, init: Any = None, reads: Any = None) -> Any:
    return s_tir.SBlock(
        block.iter_vars, block.reads if reads is None else reads, block.writes, block.name_hint,
        block.body if body is None else body, block.init if init is None else init,
        block.alloc_buffers, block.match_buffers, block.annotations,
    )  # fmt: skip


def _product(change: Callable[[Any], Any]) -> Change:
    """The change of a block `C`; what it gives is the new block."""

    def changed(realize: Any) -> Any:
        if not _named(realize, "C"):
            return realize
        return s_tir.SBlockRealize(realize.iter_values, realize.predicate, change(realize.block))

    return changed


def _store(value: Callable[[Any], Any]) -> Change:
    def changed(block: Any) -> Any:
        store = block.body
        return _block(block, tirx.BufferStore(store.buffer, value(store.value), store.indices))

    return _product(changed)


def _where(name: str) -> Callable[[PrimFunc], PrimFunc]:
    def conditional(realize: Any) -> Any:
        if not _named(realize, name) or not len(realize.iter_values):
            return realize
        first, last = realize.iter_values[0], realize.iter_values[-1]
        return s_tir.SBlockRealize(realize.iter_values, first >= last, realize.block)

    return lambda function: _mapped(function, s_tir.SBlockRealize, conditional)


def _init(block: Any) -> Any:
    init = block.init
    one = tirx.const(1, str(init.buffer.dtype))
    return _block(block, init=tirx.BufferStore(init.buffer, one, init.indices))


def _mirrored(realize: Any) -> Any:
    """The last axis bound to its loop counted down."""
    if not _named(realize, "C"):
        return realize
    *others, last = realize.iter_values
    extent = realize.block.iter_vars[-1].dom.extent
    return s_tir.SBlockRealize([*others, extent - 1 - last], True, realize.block)


def _value(function: PrimFunc, change: Callable[[Any], Any]) -> PrimFunc:
    return _mapped(function, s_tir.SBlockRealize, _store(change))


def _half(value: Any) -> Any:
    kind = str(value.ty.dtype)
    two = tirx.const(2, kind)
    return value.a * two + value.b


def _plus_one(value: Any) -> Any:
    return value + tirx.const(1, str(value.ty.dtype))


def _select(value: Any) -> Any:
    zero = tirx.const(0, str(value.ty.dtype))
    return value.a + tirx.Select(value.b > zero, value.b, zero)


def _minus(value: Any) -> Any:
    product = value.b
    return value.a + (product.a - product.b)


def _square(value: Any) -> Any:
    product = value.b
    return value.a + product.a * product.a * product.b


def _other_way(value: Any) -> Any:
    return value.b + value.a


SPOILS: dict[str, Callable[[PrimFunc], PrimFunc]] = {
    "where in the product": _where("C"),
    "where after the product": _where("D0"),
    "starts from one": lambda f: _mapped(f, s_tir.SBlockRealize, _product(_init)),
    "counts down": lambda f: _mapped(f, s_tir.SBlockRealize, _mirrored),
    "doubles its sum": lambda f: _value(f, _half),
    "adds one": lambda f: _value(f, _plus_one),
    "adds what is positive": lambda f: _value(f, _select),
    "subtracts": lambda f: _value(f, _minus),
    "squares": lambda f: _value(f, _square),
    "the sum comes last": lambda f: _value(f, _other_way),
    "takes the largest": lambda f: _value(f, lambda value: tirx.max(value.a, value.b)),
}
