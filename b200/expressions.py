"""TIRX expressions as functions of a warp. What is not understood is refused before any runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from b200.buffers import (
    SHARED,
    Buffer,
    Compute,
    Region,
    buffer_of,
    constant,
    key,
)
from b200.machine import LANES, Value, Warp
from b200.memory import (
    check_bounds,
    elements,
    enter_read,
    located,
)
from b200.place import Statement
from b200.registers import read_registers
from b200.report import NotUnderstood

Binary = Callable[[Any, Any], Any]


def truncated(a: Any, b: Any) -> Any:
    """Division towards zero."""
    quotient = abs(a) // abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient)[()]


BINARY: dict[str, Binary] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul,
    "FloorDiv": operator.floordiv, "FloorMod": operator.mod,
    "Div": truncated, "Mod": lambda a, b: a - truncated(a, b) * b,
    "Min": np.minimum, "Max": np.maximum,
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le,
    "GT": operator.gt, "GE": operator.ge, "And": np.logical_and, "Or": np.logical_or,
    "BitwiseAnd": operator.and_, "BitwiseOr": operator.or_, "BitwiseXor": operator.xor,
    "LShift": operator.lshift, "RShift": operator.rshift,
    "tirx.bitwise_and": operator.and_, "tirx.bitwise_or": operator.or_,
    "tirx.bitwise_xor": operator.xor, "tirx.shift_left": operator.lshift,
    "tirx.shift_right": operator.rshift,
}  # fmt: skip
SAME = {"tirx.cuda.cvta_generic_to_shared", "tirx.reinterpret"}  # addresses have one form here


class Expressions:
    """Translates expressions; it knows the buffers that were declared."""

    def __init__(self) -> None:
        self.buffers: dict[int, Buffer] = {}

    def declare(self, var: Any) -> Buffer:
        """A buffer that a statement declares."""
        buffer = buffer_of(var)
        self.buffers[buffer.key] = buffer
        return buffer

    def buffer(self, var: Any) -> Buffer:
        """The buffer of a variable.

        Raises:
            NotUnderstood: no statement declared it.
        """
        if key(var) not in self.buffers:
            raise NotUnderstood(f"the buffer {var.name}, which is not declared before its use")
        return self.buffers[key(var)]

    def region(self, node: Any, at: Statement) -> Region:
        """A part of a buffer that a tile operation names."""
        if type(node).__name__ != "TensorRegion":
            raise NotUnderstood(f"{node} as a part of a buffer, in {at}")
        buffer = self.buffer(node.source)
        minima = tuple(self.compute(part.min, at) for part in node.region)
        extents = tuple(constant(part.extent, f"an extent in {at}") for part in node.region)
        return Region(buffer, minima, extents)

    def compute(self, node: Any, at: Statement) -> Compute:
        """A function that computes the expression; `at` is the statement that it is in.

        Raises:
            NotUnderstood: what it contains.
        """
        if isinstance(node, (bool, int, float)):
            return lambda warp: node
        name = type(node).__name__
        if name in BINARY:
            return self._binary(BINARY[name], node.a, node.b, at)
        if name in {"IntImm", "FloatImm"}:
            value = node.value
            return lambda warp: value
        if name == "Var":
            return self._variable(node, at)
        if name == "TensorLoad":
            return self._load(node, at)
        if name == "Cast":
            return self._cast(node, at)
        if name == "Not":
            inner = self.compute(node.a, at)
            return lambda warp: np.logical_not(inner(warp))[()]
        if name == "Select":
            return self._select([node.condition, node.true_value, node.false_value], at)
        if name == "Call":
            return self._call(node, at)
        raise NotUnderstood(f"the expression {node} ({name}), in {at}")

    def _binary(self, apply: Binary, a: Any, b: Any, at: Statement) -> Compute:
        first, second = self.compute(a, at), self.compute(b, at)
        return lambda warp: apply(first(warp), second(warp))

    def _variable(self, node: Any, at: Statement) -> Compute:
        name = key(node)

        def compute(warp: Warp) -> Value:
            if name not in warp.values:
                raise NotUnderstood(f"the variable {node.name}, which has no value, in {at}")
            return warp.values[name]

        return compute

    def _cast(self, node: Any, at: Statement) -> Compute:
        inner, dtype = self.compute(node.value, at), np.dtype(str(node.ty.dtype))

        def compute(warp: Warp) -> Value:
            value = inner(warp)
            if isinstance(value, np.ndarray):
                return value.astype(dtype)
            return np.array(value).astype(dtype).item()  # type: ignore[no-any-return]

        return compute

    def _select(self, parts: list[Any], at: Statement) -> Compute:
        condition, true, false = (self.compute(part, at) for part in parts)
        return lambda warp: np.where(condition(warp), true(warp), false(warp))[()]

    def _call(self, node: Any, at: Statement) -> Compute:
        name = node.op.name
        if name in BINARY:
            return self._binary(BINARY[name], node.args[0], node.args[1], at)
        if name in SAME:
            return self.compute(node.args[0], at)
        if name == "tirx.if_then_else":
            return self._select(list(node.args), at)
        if name == "tirx.address_of":
            return self._address(node.args[0], at)
        if name == "tirx.cuda.thread_rank":
            return lambda warp: warp.rank * LANES + np.arange(LANES)
        if name == "tirx.cuda.elect_sync":
            return self._elected(at)
        raise NotUnderstood(f"the call of {name}, in {at}")

    @staticmethod
    def _elected(at: Statement) -> Compute:
        def compute(warp: Warp) -> Value:
            warp.whole(warp.place(at), "elect.sync")
            elected: Value = np.arange(LANES) == warp.machine.leader
            return elected

        return compute

    def _address(self, node: Any, at: Statement) -> Compute:
        """Of an element of shared memory: in bytes, with the rank of its CTA above."""
        region = self.element(node, at)
        buffer = region.buffer
        if buffer.scope not in SHARED:
            raise NotUnderstood(f"the address of {node}, in {at}")
        places = buffer.places

        def compute(warp: Warp) -> Value:
            box = region.box(warp, warp.place(at))
            return warp.bases[buffer.key] + int(places[box].item()) * buffer.itemsize

        return compute

    def element(self, node: Any, at: Statement) -> Region:
        """One element, that a load or a store names."""
        buffer = self.buffer(node.source if hasattr(node, "source") else node.buffer)
        minima = tuple(self.compute(index, at) for index in node.indices)
        return Region(buffer, minima, (1,) * len(minima))

    def _load(self, node: Any, at: Statement) -> Compute:
        region = self.element(node, at)
        scope = region.buffer.scope
        if scope == "local":
            return lambda warp: read_registers(warp, region, warp.place(at))
        if scope in SHARED:
            return lambda warp: load_shared(warp, region, at)
        raise NotUnderstood(f"the load {node} from {scope} memory, in {at}")


def load_shared(warp: Warp, region: Region, at: Statement) -> Value:
    """One element of shared memory, the same for all active threads."""
    buffer, place = region.buffer, warp.place(at)
    within = buffer.places[region.box(warp, place)].reshape(-1) * buffer.itemsize
    cta, offset = located(warp, warp.bases[buffer.key], place)
    check_bounds(warp.machine, cta, offset + within, buffer.itemsize, place)
    enter_read(cta, offset + within, warp.access(place), warp.order)
    memory, first = elements(cta, buffer.dtype, offset + within)
    value: Value = memory[first][0].item()
    return value
