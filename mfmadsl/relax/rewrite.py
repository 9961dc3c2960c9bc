"""A module of Relax, each of whose functions a mutator has gone through."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator


def rewritten(module: tvm.IRModule, mutator: PyExprMutator) -> tvm.IRModule:
    """What the mutator, made for the module, makes of its functions, with those that it adds."""
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(variable, mutator.visit_expr(function))
    changed: tvm.IRModule = mutator.builder_.get()
    return changed
