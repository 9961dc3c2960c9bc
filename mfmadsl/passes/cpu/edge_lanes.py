"""Vectorized loops that go past an edge, as vectors of which some lanes are masked.

TVM takes a condition on the lane for a reason to make no vector at all: it computes the lanes one
by one. Here such a condition becomes the mask of loads and of the store:

    for lane in T.vectorized(16):
        if j + lane < n:
            c[j + lane] = f(b[j + lane])

becomes, with the mask of the lanes below n - j,

    own_b[0:16] = masked_load(b[j:j + 16], mask)
    for lane in T.vectorized(16):
        own_c[lane] = f(own_b[lane])
    masked_store(c[j:j + 16], own_c[0:16], mask)
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    Buffer,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    Stmt,
    Var,
)

from mfmadsl.passes.tir.expression import (
    conjuncts_of,
    constant,
    depends,
    loads_of,
    name_of,
    scope_of,
    step_of,
    substitute,
)
from mfmadsl.passes.tir.linear import bounded
from mfmadsl.passes.tir.rewrite import dtype_of, with_body
from mfmadsl.passes.tir.walk import mapped

_INDEX = "int32"
"""What lanes and places are counted in; loops of others are left as they are."""


def mask_edge_lanes(function: PrimFunc) -> PrimFunc:
    """The function, whose buffers are flat, with such loops as vectors of masked lanes.

    A loop is left as it is where its lanes do not lie side by side, where a condition is no upper
    bound of the lane or reads memory, and where a choice by the lane reads memory on both sides.
    What is read uniformly, or tells a place, is read only where there are lanes for it.
    """

    def loop(node: For) -> Stmt:
        lanes = constant(node.extent)
        counted = str(node.loop_var.ty.dtype) == _INDEX
        if node.kind != ForKind.VECTORIZED or lanes is None or not counted:
            return node
        return _Vector(node.loop_var, lanes).masked(node) or node

    return with_body(function, mapped(function.body, (For, loop)))


class _Vector:
    """A vectorized loop on its way; `loaded` are the statements that load its masked operands."""

    def __init__(self, lane: Var, lanes: int) -> None:
        self.lane, self.lanes = lane, lanes
        self.loaded: list[Stmt] = []
        self.understood = True

    def masked(self, loop: For) -> Stmt | None:
        """What does the same; None where there is nothing to do, or no way to do it."""
        conditions, store = _conditions(loop.body)
        if not isinstance(store, BufferStore) or len(store.indices) != 1:
            return None
        uniform = [each for each in conditions if not depends(each, self.lane)]
        if any(map(loads_of, uniform)) or not _is_number(store.buffer):
            return None
        bound = self._bound([each for each in conditions if depends(each, self.lane)])
        value = self._chosen(_within_choices(store.value), bound)
        if bound is not None:
            value = self._loads_masked(value, bound)
        place = self._first(store.indices[0]) if bound is not None else None
        if place is not None and loads_of(place):
            return None
        if not self.understood or (bound is None and not self.loaded):
            return None
        stored: list[Stmt] = []
        target, index = store.buffer, store.indices[0]
        if bound is not None and place is not None:
            target, index = self._own(store.buffer), self.lane
            whole = tirx.BufferLoad(target, [self._ramp(0)])
            call = tirx.op.call_intrin(
                "void", "tirx.masked_store", store.buffer, whole, self._ramp(place),
                self._mask(bound),
            )  # fmt: skip
            self.loaded.append(AllocBuffer(target))
            stored.append(tirx.Evaluate(call))
        body = BufferStore(target, value, [index])
        again = For(loop.loop_var, loop.min, loop.extent, loop.kind, body, None, loop.annotations)
        made: Stmt = tirx.SeqStmt([*self.loaded, again, *stored])
        for condition in reversed(uniform):
            made = IfThenElse(condition, made, None)
        return made

    def _bound(self, conditions: Sequence[Expr]) -> Expr | None:
        """How many lanes, from the first, meet conditions that depend on the lane."""
        bound: Expr | None = None
        for condition in conditions:
            sides = bounded(condition)
            first = None if sides is None else self._first(sides[0] - sides[1])
            if first is None or loads_of(first):
                self.understood = False
                return None
            inside = Analyzer().simplify(0 - first)
            bound = inside if bound is None else tirx.Min(bound, inside)
        # A mask counts without a sign.
        return None if bound is None else tirx.Max(bound, tirx.IntImm("int32", 0))

    def _first(self, index: Expr) -> Expr | None:
        """The place of lane 0, if the others follow it side by side; else nothing is understood."""
        if step_of(index, self.lane) != 1 or str(index.ty.dtype) != _INDEX:
            self.understood = False
            return None
        return Analyzer().simplify(substitute(index, {self.lane: tirx.IntImm("int32", 0)}))

    def _chosen(self, value: Expr, stored: Expr | None) -> Expr:
        """The value, where a choice by the lane loads only the lanes that it takes."""

        none = tirx.IntImm("int32", 0)

        def choice(call: Call) -> Expr:
            if name_of(call) != "if_then_else":
                return call
            condition, taken, other = call.args
            if not depends(condition, self.lane):
                if stored is None:
                    return call
                taken = self._loads_masked(taken, tirx.Select(condition, stored, none))
                other = self._loads_masked(other, tirx.Select(condition, none, stored))
                return tirx.if_then_else(condition, taken, other)
            if any(scope_of(load.source) != "local" for load in loads_of(other)):
                self.understood = False
            parts = conjuncts_of(condition)
            if any(map(loads_of, parts)):
                self.understood = False
            bound = self._bound([each for each in parts if depends(each, self.lane)])
            if bound is None:
                return call
            for each in parts:
                if not depends(each, self.lane):
                    bound = tirx.Select(each, bound, none)
            if stored is not None:
                bound = tirx.Min(bound, stored)
            return tirx.Select(condition, self._loads_masked(taken, bound), other)

        return mapped(value, (Call, choice))

    def _loads_masked(self, value: Expr, bound: Expr) -> Expr:
        """The value of buffers of a vector's own, that are loaded before."""

        def load(node: TensorLoad) -> Expr:
            buffer = node.source
            # What is local has all lanes.
            if scope_of(buffer) == "local":
                return node
            if not any(depends(index, self.lane) for index in node.indices):
                return tirx.if_then_else(bound > 0, node, tirx.const(0, dtype_of(node)))
            place = self._first(node.indices[0])
            if place is None or not _is_number(buffer):
                self.understood = False
                return node
            own, dtype = self._own(buffer), f"{dtype_of(node)}x{self.lanes}"
            lanes = tirx.op.call_intrin(
                dtype, "tirx.masked_load", buffer, self._ramp(place), self._mask(bound)
            )
            loaded: Stmt = BufferStore(own, lanes, [self._ramp(0)])
            if loads_of(place):
                loaded = IfThenElse(bound > 0, loaded, None)
            self.loaded += [AllocBuffer(own), loaded]
            return tirx.BufferLoad(own, [self.lane])

        return mapped(value, (TensorLoad, load))

    def _own(self, buffer: Buffer) -> Buffer:
        """A buffer of one vector."""
        return tirx.decl_buffer([self.lanes], buffer.dtype, f"{buffer.name}_lanes", scope="local")

    def _ramp(self, first: Expr | int) -> Expr:
        first = tirx.IntImm("int32", first) if isinstance(first, int) else first
        return tirx.Ramp(first, tirx.IntImm("int32", 1), self.lanes)

    def _mask(self, bound: Expr) -> Expr:
        zero = tirx.IntImm("int32", 0)
        dtype = f"uint1x{self.lanes}"
        mask: Expr = tirx.op.call_intrin(dtype, "tirx.get_active_lane_mask", zero, bound)
        return mask


def _is_number(buffer: Buffer) -> bool:
    """Whether its elements are numbers: TVM has no masked vectors of truth values."""
    return str(buffer.dtype) != "bool"


def _within_choices(value: Expr) -> Expr:
    """The value, in which a choice within another asks for that one's condition as well."""

    def narrowed(part: Expr, condition: Expr) -> Expr:
        def inner(call: Call) -> Expr:
            if name_of(call) != "if_then_else":
                return call
            own, taken, other = call.args
            return tirx.if_then_else(tirx.And(condition, own), taken, other)

        return mapped(part, (Call, inner))

    def outer(call: Call) -> Expr:
        if name_of(call) != "if_then_else":
            return call
        condition, taken, other = call.args
        within = narrowed(taken, condition), narrowed(other, tirx.Not(condition))
        return tirx.if_then_else(condition, *within)

    return mapped(value, (Call, outer))


def _conditions(statement: Stmt) -> tuple[list[Expr], Stmt]:
    """The conditions around a statement, and that statement."""
    found: list[Expr] = []
    while isinstance(statement, IfThenElse) and statement.else_case is None:
        found += conjuncts_of(statement.condition)
        statement = statement.then_case
    return found, statement
