"""Walks over expressions and statements of TIR, by the functions that `tvm_ffi` registers.

Its own `structural_walk` and `structural_map` look at their callbacks anew at each call, which
takes three times as long as an expression's walk itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias, TypeVar

import tvm_ffi

Node = TypeVar("Node")
Entry: TypeAlias = tuple[type | tuple[type, ...], Callable[..., object]]
"""Types of nodes, and what is called with each node of one of them."""

_walk = tvm_ffi.get_global_func("ffi.StructuralWalk")
_map = tvm_ffi.get_global_func("ffi.StructuralMap")
_AFTER_CHILDREN = int(tvm_ffi.WalkOrder.POSTORDER)


def walk(node: object, *entries: Entry) -> tvm_ffi.VisitInterrupt | None:
    """Call the first entry that is for a node with each one in an expression, a statement or a list
    of them, inner ones first, until one returns a VisitInterrupt, which is the result then."""
    found: tvm_ffi.VisitInterrupt | None = _walk(node, _indexed(entries), [], _AFTER_CHILDREN)
    return found


def mapped(node: Node, *entries: Entry) -> Node:
    """The expression, statement, function or list with each node in it replaced by what the first
    entry that is for it returns, inner ones first; what nothing is changed in stays as it is."""
    found: Node = _map(node, _indexed(entries), [], _AFTER_CHILDREN)
    return found


def _indexed(entries: tuple[Entry, ...]) -> list[tuple[int, Callable[..., object]]]:
    return [(index, call) for kinds, call in entries for index in _indices(kinds)]


@cache  # of the kinds that a program names
def _indices(kinds: type | tuple[type, ...]) -> tuple[int, ...]:
    return tuple(_index(kind) for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))


def _index(kind: type) -> int:
    return int(kind.__tvm_ffi_type_info__.type_index)  # type: ignore[attr-defined]
