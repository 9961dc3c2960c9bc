"""A change of each function of a module, as a pass among TVM's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import tvm
from tvm.tirx import PrimFunc

Pass: TypeAlias = Callable[[tvm.IRModule], tvm.IRModule]


def of_functions(change: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """The pass that makes `change` of each function of a module."""

    def each(module: tvm.IRModule) -> tvm.IRModule:
        changed = {name: change(function) for name, function in module.functions.items()}
        return tvm.IRModule(changed, attrs=module.attrs)

    return each
