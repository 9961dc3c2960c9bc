"""Calls of two functions as one call, of a function that does both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeGuard

import tvm
from tvm import relax
from tvm.ir import GlobalVar
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.target import Target
from tvm.tirx import Expr, PrimFunc

from mfmadsl.relax.rule import scheduled_product

_CALL = tvm.ir.Op.get("relax.call_tir")


class JoinRule(ABC):
    """Which calls become one, if that is a kernel of ours."""

    @abstractmethod
    def takes(self, function: PrimFunc) -> bool:
        """Whether a function may take in what computes its arguments."""

    @abstractmethod
    def gives(self, function: PrimFunc, only_use: bool) -> bool:
        """Whether a function may become part of the one that takes its result, perhaps as the only
        one that does."""

    def refusal(self, joined: PrimFunc) -> str:
        """Why the function that does both is no better than two; empty if it is."""
        return ""


def join(
    module: tvm.IRModule, target: Target, rule: JoinRule, apart: dict[str, str]
) -> tvm.IRModule:
    """The module with calls joined by a rule, where `gemm_schedule` makes a kernel of both. Why
    functions that give could not become a part is told in `apart`."""
    joined: tvm.IRModule = relax.transform.DeadCodeElimination()(
        _Calls(module, target, rule, apart).transformed()
    )
    return joined


@mutator
class _Calls(PyExprMutator):
    def __init__(
        self, module: tvm.IRModule, target: Target, rule: JoinRule, apart: dict[str, str]
    ) -> None:
        super().__init__(module)
        self.module, self.target, self.rule, self.apart = module, target, rule, apart
        self.known: dict[object, GlobalVar | None] = {}  # of several layers, those that are alike
        self.uses: Counter[object] = Counter()

    def transformed(self) -> tvm.IRModule:
        for variable, function in self.module.functions_items():
            if isinstance(function, relax.Function) and "Primitive" not in (function.attrs or {}):
                self.uses = _uses(function)
                self.builder_.update_func(variable, self.visit_expr(function))
        changed: tvm.IRModule = self.builder_.get()
        return changed

    def visit_call_(self, call: relax.Call) -> Expr:
        given = call.args[1].fields if is_plain_call(call) else []
        uses = [self.uses[each.__chandle__()] for each in given]
        call = self.visit_expr_post_order(call)
        function = self._function_of(call)
        if function is None or not self.rule.takes(function):
            return call
        producers: dict[Expr, relax.Call] = {}
        for argument, count in zip(call.args[1].fields, uses, strict=True):
            made = self.lookup_binding(argument) if isinstance(argument, relax.Var) else None
            if not is_plain_call(made):
                continue
            if self._gives(made, only_use=count == 1):
                producers[argument] = made
            elif self._gives(made, only_use=True):
                self._tell_apart(made, call, "its result is read elsewhere, too")
        return self._together(call, producers) if producers else call

    def _gives(self, made: relax.Call, only_use: bool) -> bool:
        function = self._function_of(made)
        return function is not None and self.rule.gives(function, only_use)

    def _tell_apart(self, made: relax.Call, call: relax.Call, reason: str) -> None:
        self.apart[str(made.args[0].name_hint)] = f"apart from {call.args[0].name_hint}: {reason}"

    def _function_of(self, call: Expr) -> PrimFunc | None:
        """The module's function that is called with arrays alone; None for one that is joined."""
        return self.module.functions.get(call.args[0]) if is_plain_call(call) else None

    def _together(self, call: relax.Call, producers: Mapping[Expr, relax.Call]) -> relax.Call:
        """A call of one function that does what producers and call do; the call as it is, where
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
            refusal = self.rule.refusal(function)
            refusal = refusal or scheduled_product(name, function, self.target)[1].reason
            self.known[key] = None if refusal else self.builder_.add_func(function, name)
            for made in producers.values() if refusal else ():
                self._tell_apart(made, call, refusal)
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


def is_plain_call(call: Expr | None) -> TypeGuard[relax.Call]:
    """Whether it calls a PrimFunc with arrays alone, and has its result to itself."""
    return isinstance(call, relax.Call) and call.op == _CALL and len(call.args) == 2


def _uses(function: relax.Function) -> Counter[object]:
    """How often each variable stands in a function, where it is not bound."""
    found: Counter[object] = Counter()

    def count(node: Expr) -> None:
        if isinstance(node, relax.Var):
            found[node.__chandle__()] += 1

    relax.analysis.post_order_visit(function, count)
    return found
