"""Weights that are dequantised before a product: computed on the way into the LDS, in its kernel.

TVM's fusion puts element-wise functions behind a product, and never before it, where each of its
tiles computes them anew. Of those that read fewer bytes than they write that is the better way:
the weights come from memory as they are stored, and nothing is written back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import relax
from tvm.ir import GlobalVar
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.target import Target
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.relax.rule import scheduled_product
from mfmadsl.schedule import ScheduleError
from mfmadsl.schedule.product.dataflow import accesses, check_element_wise
from mfmadsl.schedule.product.nest import loads, nests
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products

_CALL = tvm.ir.Op.get("relax.call_tir")


def fuse_dequantised(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with each product and what dequantises its factors as one PrimFunc.

    Those are left apart of which `gemm_schedule` would not make a kernel together.
    """
    fused: tvm.IRModule = relax.transform.DeadCodeElimination()(
        _Products(module, target).transformed()
    )
    return fused


@mutator
class _Products(PyExprMutator):
    def __init__(self, module: tvm.IRModule, target: Target) -> None:
        super().__init__(module)
        self.module, self.target = module, target
        self.known: dict[object, GlobalVar | None] = {}  # of several layers, those that are alike

    def transformed(self) -> tvm.IRModule:
        for variable, function in self.module.functions_items():
            if isinstance(function, relax.Function) and "Primitive" not in (function.attrs or {}):
                self.builder_.update_func(variable, self.visit_expr(function))
        changed: tvm.IRModule = self.builder_.get()
        return changed

    def visit_call_(self, call: relax.Call) -> Expr:
        call = self.visit_expr_post_order(call)
        if not self._calls(call, is_product):
            return call
        producers: dict[Expr, relax.Call] = {}
        for argument in call.args[1].fields:
            made = self.lookup_binding(argument) if isinstance(argument, relax.Var) else None
            if made is not None and self._calls(made, dequantises):
                producers[argument] = made
        return self._together(call, producers) if producers else call

    def _calls(self, call: Expr, kind: Callable[[PrimFunc], bool]) -> bool:
        """Whether it is a call, with arrays alone, of a PrimFunc of that kind."""
        if not isinstance(call, relax.Call) or call.op != _CALL or len(call.args) != 2:
            return False
        called = self.module.functions.get(call.args[0])  # none for one made here
        return called is not None and kind(called)

    def _together(self, call: relax.Call, producers: Mapping[Expr, relax.Call]) -> relax.Call:
        """A call of one function that does what producers and product do; the call as it is, where
        that would be no kernel of ours."""
        given: list[Expr] = []
        for argument in call.args[1].fields:
            made = producers.get(argument)
            given += [argument] if made is None else list(made.args[1].fields)
        outer = list(dict.fromkeys(given))
        names = [str(each.args[0].name_hint) for each in (*producers.values(), call)]
        places = tuple(argument in producers for argument in call.args[1].fields)
        key = (*names, places, tuple(map(outer.index, given)))
        if key not in self.known:
            name = "_".join(["fused", *(part.removeprefix("fused_") for part in names)])
            function = self._fused(name, call, producers, outer)
            ours = scheduled_product(name, function, self.target)[1].is_ours
            self.known[key] = self.builder_.add_func(function, name) if ours else None
        variable = self.known[key]
        if variable is None:
            return call
        return relax.Call(_CALL, [variable, relax.Tuple(outer)], call.attrs, call.ty_args)

    def _fused(
        self, name: str, call: relax.Call, producers: Mapping[Expr, relax.Call], outer: list[Expr]
    ) -> PrimFunc:
        """The PrimFunc, by TVM's fusion of a function that calls the producers and the product."""
        inner: dict[Expr, Any] = {each: relax.Var(f"p{n}", each.ty) for n, each in enumerate(outer)}
        builder = relax.BlockBuilder()
        with builder.function(name, list(inner.values()), attrs={"Primitive": True}, private=True):
            with builder.dataflow():
                for variable, made in producers.items():
                    inner[variable] = builder.emit(_called(made, inner))
                result = builder.emit_output(_called(call, inner))
            builder.emit_func_output(result)
        variable = builder.get().get_global_var(name)
        caller = [relax.Var(f"p{n}", each.ty) for n, each in enumerate(outer)]
        with builder.function("main", caller):  # what nobody calls is not fused
            builder.emit_func_output(builder.emit(relax.Call(variable, caller)))
        functions = dict(builder.get().functions_items())
        functions[variable] = relax.utils.copy_with_new_vars(functions[variable])
        functions |= {
            each.args[0]: self.module[each.args[0]] for each in (*producers.values(), call)
        }
        fused: PrimFunc = relax.transform.FuseTIR()(tvm.IRModule(functions))[name]
        return fused


def _called(call: relax.Call, inner: Mapping[Expr, Any]) -> relax.Call:
    arguments = relax.Tuple([inner[each] for each in call.args[1].fields])
    return relax.Call(_CALL, [call.args[0], arguments], call.attrs, call.ty_args)


def is_product(function: PrimFunc) -> bool:
    """Whether one of its blocks is a sum of products, the only one that sums."""
    try:
        sum_of_products(product_nest(function))
    except ScheduleError:
        return False
    return True


def dequantises(function: PrimFunc) -> bool:
    """Whether it computes the elements of one array one by one, of arrays of fewer bytes."""
    every, found = accesses(function), nests(function)
    if len(found) != len(every):
        return False
    try:
        for nest in found:
            check_element_wise(nest)
    except ScheduleError:
        return False
    read_at = [index for nest in found for load in loads(nest.store) for index in load.indices]
    if any(loads(index) for index in read_at):  # as a table is: no loop loads it ahead
        return False
    *sources, result = function.params
    written = [buffer for access in every for buffer in access.writes]
    results = [each for each in function.params if any(each.same_as(b) for b in written)]
    read, made = [_bytes(each) for each in sources], _bytes(result)
    if len(results) != 1 or not results[0].same_as(result) or made is None or None in read:
        return False
    return sum(size for size in read if size is not None) < made


def _bytes(parameter: Var) -> int | None:
    """The bytes of an array; None where they are not known, or it is no array."""
    size = bits_of(getattr(parameter, "dtype", "int8")) // 8
    for extent in getattr(parameter, "shape", [None]):
        number = constant(extent)
        if number is None:
            return None
        size *= number
    return size
