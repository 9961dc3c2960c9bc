"""Kernels with one statement taken away or changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir import Call, Range, TensorRegion
from tvm.tirx import EQ, Evaluate, IfThenElse, PrimFunc, call_intrin, const, floormod

Change = Callable[[Any], Any]


def name_of(node: Any) -> str:
    """Of an instruction or a tile operation; of other statements their class."""
    if hasattr(node, "workspace"):
        return str(node.op.name).removeprefix("tirx.tile.")
    if type(node).__name__ == "Evaluate" and type(node.value).__name__ == "Call":
        return str(node.value.op.name).rsplit(".", 1)[-1]
    return type(node).__name__


def changed(kernel: PrimFunc, name: str, number: int, change: Change) -> PrimFunc:
    """The kernel with the statement `number` of those of a name replaced, in their order.

    Raises:
        LookupError: there are not so many.
    """
    seen = 0

    def visit(node: Any) -> Any:
        nonlocal seen
        if name_of(node) == name:
            seen += 1
            if seen - 1 == number:
                return change(node)
        return rebuilt(node, visit)

    body = visit(kernel.body)
    if seen <= number:
        raise LookupError(f"{seen} statements are {name}, none has the number {number}")
    return kernel.with_body(body)


def rebuilt(node: Any, visit: Change) -> Any:
    """The statement, with those within it visited."""
    import tvm.tirx.stmt as of

    kind = type(node).__name__
    if kind == "SeqStmt":
        return of.SeqStmt([visit(part) for part in node.seq])
    if kind == "AttrStmt":
        return of.AttrStmt(node.node, node.attr_key, node.value, visit(node.body))
    if kind == "IfThenElse":
        true = visit(node.then_case)
        false = None if node.else_case is None else visit(node.else_case)
        return of.IfThenElse(node.condition, true, false)
    if kind == "While":
        return of.While(node.condition, visit(node.body))
    if kind == "For":
        return of.For(node.loop_var, node.min, node.extent, node.kind, visit(node.body))
    return node


def nothing(_: Any) -> Any:
    """Instead of a statement."""
    return Evaluate(const(0, "int32"))


def operand(position: int, change: Change) -> Change:
    """An instruction with another operand."""

    def apply(node: Any) -> Any:
        call = node.value
        args = list(call.args)
        args[position] = change(args[position])
        return Evaluate(Call(call.op, args, attrs=call.attrs, ret_ty=call.ty))

    return apply


def argument(position: int, change: Change) -> Change:
    """A tile operation with another argument."""

    def apply(node: Any) -> Any:
        args = list(node.args)
        args[position] = change(args[position])
        return node.replace(args=args)

    return apply


def exchanged(one: int, other: int) -> Change:
    """A tile operation with two arguments exchanged."""

    def apply(node: Any) -> Any:
        args = list(node.args)
        args[one], args[other] = args[other], args[one]
        return node.replace(args=args)

    return apply


def shifted(axis: int, by: int) -> Change:
    """A part of a buffer that begins elsewhere along an axis."""

    def apply(region: Any) -> Any:
        ranges = list(region.region)
        ranges[axis] = Range.from_min_extent(ranges[axis].min + by, ranges[axis].extent)
        return TensorRegion(region.source, ranges, region.ty)

    return apply


def unconditional(node: Any) -> Any:
    """What is done only if something holds is done anyhow."""
    return node.then_case


def by_lane_0(node: Any) -> Any:
    """What is done under some condition is done by the first thread of the warp."""
    rank = call_intrin("int32", "tirx.cuda.thread_rank")
    return IfThenElse(EQ(floormod(rank, 32), const(0, "int32")), node.then_case, None)
