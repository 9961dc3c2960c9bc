"""Conditions that read memory, asked only where those before them hold.

TVM makes one condition of those of branches within each other, as if an `and` stopped at the first
that fails. Its code generator evaluates all of it, and reads what lies past an edge.
"""

from __future__ import annotations

from functools import reduce

from tvm import tirx
from tvm.ir import Call
from tvm.tirx import Expr, IfThenElse, PrimFunc, Stmt

from mfmadsl.passes.tir.expression import conjuncts_of, loads_of, name_of
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped


def short_circuit(function: PrimFunc) -> PrimFunc:
    """The function with such conditions taken apart into branches within each other."""

    def choice(node: Call) -> Expr:
        if name_of(node) != "if_then_else":
            return node
        condition, value, other = node.args
        groups = _groups(condition)
        return reduce(lambda inner, c: tirx.if_then_else(c, inner, other), groups[::-1], value)

    def branch(node: IfThenElse) -> Stmt:
        groups = _groups(node.condition)
        if node.else_case is not None or len(groups) == 1:
            return node
        return reduce(lambda inner, c: IfThenElse(c, inner, None), groups[::-1], node.then_case)

    return with_body(function, mapped(function.body, (Call, choice), (IfThenElse, branch)))


def _groups(condition: Expr) -> list[Expr]:
    """Conditions to ask one after the other: each that reads memory begins a group."""
    groups: list[list[Expr]] = [[]]
    for each in conjuncts_of(condition):
        if loads_of(each) and groups[-1]:
            groups.append([])
        groups[-1].append(each)
    return [reduce(tirx.And, group) for group in groups]
