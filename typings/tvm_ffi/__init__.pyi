from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_Node = TypeVar("_Node")
_Visitor = tuple[type[Any] | tuple[type[Any], ...], Callable[[Any], Any]]

class Object:
    def same_as(self, other: object) -> bool: ...
    def __chandle__(self) -> int: ...

def structural_walk(root: object, callbacks: _Visitor | Sequence[_Visitor]) -> Any: ...
def structural_map(
    root: _Node,
    callbacks: _Visitor | Sequence[_Visitor],
    *,
    with_def_region_kind: tuple[Any, Callable[..., Any]] = ...,
) -> _Node: ...
def __getattr__(name: str) -> Any: ...
