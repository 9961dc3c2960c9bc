"""Names that tell apart what kernels take: arguments, symbols in their shapes, and workspaces.

TVM tells variables apart by identity; after it has split a module, names are all that is left.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from tvm.tirx import PrimFunc
from tvm_ffi.serialization import from_json_graph_str, to_json_graph_str


def named_apart(function: PrimFunc) -> PrimFunc:
    """The function with `x_1`, `x_2` and so on for each `x` after the first.

    Arguments come before symbols, and symbols before workspaces.
    """
    graph = _Graph(json.loads(to_json_graph_str(function)))
    variables = graph.taken()
    names = [graph.name(variable) for variable in variables]
    if len(set(names)) == len(names):
        return function
    for variable, name in zip(variables, _apart(names), strict=True):
        graph.rename(variable, name)
    # TVM's `load_json` would write it all out once more, for what older versions have written.
    renamed: PrimFunc = from_json_graph_str(json.dumps(graph.whole))
    return renamed


def _apart(names: list[str]) -> list[str]:
    taken, found = set(names), list[str]()
    for name in names:
        own = name
        if name in found:
            own = next(other for i in count(1) if (other := f"{name}_{i}") not in taken)
            taken.add(own)
        found.append(own)
    return found


class _Graph:
    """A function as TVM writes it: a list of nodes, which refer to each other by their places."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self.whole = whole
        self._nodes: list[Any] = whole["nodes"]

    def taken(self) -> list[int]:
        """The variables that kernels of the function can take, each once."""
        root = self.whole["root_index"]
        arguments = self._field(root, "params")
        extents = [e for argument in arguments for e in self._of_type(argument, "shape", [])]
        symbols = [e for e in extents if self._nodes[e]["type"] == "ir.Var"]
        block = self._nodes[root]["data"]["body"]
        if "block" in self._nodes[block]["data"]:
            block = self._nodes[block]["data"]["block"]
        buffers = self._nodes[block]["data"].get("alloc_buffers")
        workspaces = [
            buffer
            for buffer in (self._nodes[buffers]["data"] if buffers is not None else [])
            if self._of_type(buffer, "storage_scope", "") == "global"
        ]
        return list(dict.fromkeys([*arguments, *symbols, *workspaces]))

    def name(self, variable: int) -> str:
        return str(self._field(variable, "name"))

    def rename(self, variable: int, name: str) -> None:
        # Variables of one name may share its node.
        self._nodes[variable]["data"]["name"] = len(self._nodes)
        self._nodes.append({"type": "ffi.String", "data": name})

    def _field(self, node: int, name: str) -> Any:
        return self._nodes[self._nodes[node]["data"][name]]["data"]

    def _of_type(self, variable: int, name: str, default: Any) -> Any:
        """A field of a variable's type, where its type has one."""
        field = self._field(variable, "ty").get(name)
        return default if field is None else self._nodes[field]["data"]
