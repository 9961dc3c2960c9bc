"""TIRX statements as coroutines of a warp, which stop where another warp may take over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from b200.barriers import CountError
from b200.buffers import SHARED, Compute, key
from b200.expressions import Expressions
from b200.geometry import finder
from b200.instructions import INSTRUCTIONS
from b200.machine import RANK_BIT, Pause, Run, Step, Warp
from b200.memory import address
from b200.place import Statement
from b200.registers import make_registers, write_registers
from b200.report import Kind, NotUnderstood
from b200.tiles import TILES

SERIAL, UNROLLED = 0, 3  # of TVM's `ForKind`


class Statements:
    """Translates statements, and with them what they declare."""

    def __init__(self) -> None:
        self.expressions = Expressions()

    def step(self, node: Any) -> Step:
        """A statement.

        Raises:
            NotUnderstood: what it is, or what it contains.
        """
        name = type(node).__name__
        if hasattr(node, "workspace"):
            return self._tile(node)
        if name not in STATEMENTS:
            raise NotUnderstood(f"the statement {name}: {node}")
        return STATEMENTS[name](self, node)

    def _sequence(self, node: Any) -> Step:
        steps = [self.step(part) for part in node.seq]

        def run(warp: Warp) -> Run:
            for step in steps:
                yield from step(warp)

        return run

    def _attribute(self, node: Any) -> Step:
        if node.attr_key not in {"tirx.device_entry", "tirx.dyn_smem_bytes"}:
            raise NotUnderstood(f"the attribute {node.attr_key}")
        return self.step(node.body)

    def _if(self, node: Any) -> Step:
        at = Statement(node.condition)
        condition = self.expressions.compute(node.condition, at)
        true = self.step(node.then_case)
        false = nothing if node.else_case is None else self.step(node.else_case)

        def run(warp: Warp) -> Run:
            before, value = warp.active, condition(warp)
            for step, wanted in ((true, value), (false, np.logical_not(value))):
                warp.active = before & np.asarray(wanted, np.bool_)
                if warp.active.any():
                    yield from step(warp)
            warp.active = before

        return run

    def _for(self, node: Any) -> Step:
        at = Statement(node.extent)
        if int(node.kind) not in {SERIAL, UNROLLED} or node.step is not None:
            raise NotUnderstood(f"a loop of kind {int(node.kind)}: {node.loop_var}")
        first = self.expressions.compute(node.min, at)
        extent = self.expressions.compute(node.extent, at)
        body, variable = self.step(node.body), key(node.loop_var)

        def run(warp: Warp) -> Run:
            start = warp.uniform(first(warp), warp.place(at), "where a loop begins")
            turns = warp.uniform(extent(warp), warp.place(at), "the length of a loop")
            for turn in range(start, start + turns):
                warp.values[variable] = turn
                yield from body(warp)

        return run

    def _while(self, node: Any) -> Step:
        condition = self.expressions.compute(node.condition, Statement(node.condition))
        body = self.step(node.body)

        def run(warp: Warp) -> Run:
            before = warp.active
            while True:
                warp.active = warp.active & np.asarray(condition(warp), np.bool_)
                if not warp.active.any():
                    break
                yield from body(warp)
            warp.active = before

        return run

    def _scope(self, node: Any) -> Step:
        definition = getattr(node, "def")
        find = finder(definition)
        variables = [key(variable) for variable in definition.def_ids]
        return now(lambda warp: warp.values.update(zip(variables, find(warp), strict=True)))

    def _bind(self, node: Any) -> Step:
        at = Statement(node)
        value, variable = self.expressions.compute(node.value, at), key(node.var)

        def run(warp: Warp) -> Run:
            yield Pause()  # the value may be one that another warp writes
            warp.values[variable] = value(warp)

        return run

    def _allocate(self, node: Any) -> Step:
        buffer = self.expressions.declare(node.buffer)
        if len(node.annotations or {}):
            raise NotUnderstood(f"the annotations of {buffer}: {node.annotations}")
        if buffer.scope == "local":
            return now(lambda warp: make_registers(warp, buffer))
        if buffer.scope == "shared.dyn":
            return now(lambda warp: warp.bases.update({buffer.key: address(warp.cta.rank, 0)}))
        raise NotUnderstood(f"{buffer} in {buffer.scope} memory without a pool")

    def _declare(self, node: Any) -> Step:
        at = Statement(node)
        buffer = self.expressions.declare(node.buffer)
        if buffer.scope == "tmem":
            return self._tensor_memory(node, at)
        origin = self._origin(node.data)
        if buffer.scope == "local":
            if origin is None or self.expressions.buffers[origin].dtype != buffer.dtype:
                raise NotUnderstood(f"registers {buffer} that stand for {node.data}")
            source = origin
            return now(lambda warp: warp.registers.update({buffer.key: warp.registers[source]}))
        if buffer.scope not in SHARED:
            raise NotUnderstood(f"{buffer} in {buffer.scope} memory, in {at}")
        if origin is not None:
            source = origin
            return now(lambda warp: warp.bases.update({buffer.key: warp.bases[source]}))
        return self._base(buffer.key, self.expressions.compute(node.data, at), at)

    def _tensor_memory(self, node: Any, at: Statement) -> Step:
        """Its address is stated; the pointer is the same, in another form."""
        addresses = list(node.buffer.ty.allocated_addr)
        if len(addresses) != 1:
            raise NotUnderstood(f"tensor memory without an address: {at}")
        return self._base(key(node.buffer), self.expressions.compute(addresses[0], at), at)

    @staticmethod
    def _base(buffer: int, compute: Compute, at: Statement) -> Step:
        def run(warp: Warp) -> Run:
            where = warp.uniform(compute(warp), warp.place(at), "the address of a buffer")
            warp.bases[buffer] = where
            yield from ()

        return run

    def _origin(self, data: Any) -> int | None:
        """The buffer whose pointer is meant, if it is one's."""
        if type(data).__name__ == "Call" and data.op.name == "tirx.buffer_data":
            return self.expressions.buffer(data.args[0]).key
        return None

    def _store(self, node: Any) -> Step:
        at = Statement(node)
        region = self.expressions.element(node, at)
        if region.buffer.scope != "local":
            raise NotUnderstood(f"a store of one element to {region.buffer.scope} memory: {at}")
        value = self.expressions.compute(node.value, at)
        return now(lambda warp: write_registers(warp, region, value(warp), warp.place(at)))

    def _evaluate(self, node: Any) -> Step:
        at = Statement(node)
        call = node.value
        if type(call).__name__ == "IntImm":
            return nothing
        if type(call).__name__ != "Call":
            raise NotUnderstood(f"the statement {at}")
        name = str(call.op.name).removeprefix("tirx.")
        if name in {"ptx.mapa", "ptx.mapa_u32"}:
            return self._map_address(call, at)
        if name not in INSTRUCTIONS:
            raise NotUnderstood(f"the instruction {name}, in {at}")
        operands, modifiers, predicate = self._operands(call, at)
        return stepped(INSTRUCTIONS[name](operands, modifiers, at), at, predicate)

    def _operands(
        self, call: Any, at: Statement
    ) -> tuple[list[Compute], list[str], Compute | None]:
        """An instruction's operands, its modifiers, and its predicate.

        A PTX instruction's arguments are the operands, perhaps a predicate, the modifiers in the
        order of the syntax (empty where one is left out), and flags, `pred` among them.
        """
        words = [str(part.value) for part in call.args if type(part).__name__ == "StringImm"]
        values = [part for part in call.args if type(part).__name__ != "StringImm"]
        flags = [flag for flag in words[-1].split(",") if flag] if words else []
        if set(flags) - {"pred"}:
            raise NotUnderstood(f"the flags {flags} of {at}")
        operands = [self.expressions.compute(value, at) for value in values]
        predicate = operands.pop() if flags else None
        return operands, [word for word in words[:-1] if word], predicate

    def _map_address(self, call: Any, at: Statement) -> Step:
        """`mapa`: the same byte in another CTA of the cluster."""
        region = self.expressions.element(call.args[0], at)
        where = self.expressions.compute(call.args[1], at)
        rank = self.expressions.compute(call.args[2], at)

        def run(warp: Warp) -> None:
            place = warp.place(at)
            offset = warp.uniform(where(warp), place, "an address") & ((1 << RANK_BIT) - 1)
            other = warp.uniform(rank(warp), place, "the rank of a CTA")
            write_registers(warp, region, address(other, offset), place)

        return now(run)

    def _tile(self, node: Any) -> Step:
        at = Statement(node)
        name = str(node.op.name).removeprefix("tirx.tile.")
        if name not in TILES or len(node.workspace):
            raise NotUnderstood(f"the tile operation {name}: {at}")
        return stepped(TILES[name](node, self.expressions, at), at)


STATEMENTS: dict[str, Callable[[Statements, Any], Step]] = {
    "SeqStmt": Statements._sequence,
    "AttrStmt": Statements._attribute,
    "IfThenElse": Statements._if,
    "For": Statements._for,
    "While": Statements._while,
    "ScopeIdDefStmt": Statements._scope,
    "Bind": Statements._bind,
    "AllocBuffer": Statements._allocate,
    "DeclBuffer": Statements._declare,
    "BufferStore": Statements._store,
    "Evaluate": Statements._evaluate,
}


def nothing(warp: Warp) -> Run:
    """A statement that does nothing."""
    yield from ()


def now(effect: Callable[[Warp], None]) -> Step:
    """A statement that no other warp can notice."""

    def run(warp: Warp) -> Run:
        effect(warp)
        yield from ()

    return run


def stepped(step: Step, at: Statement, predicate: Compute | None = None) -> Step:
    """A statement before which any warp may take over, by those threads that the predicate has."""

    def run(warp: Warp) -> Run:
        yield Pause()
        before = warp.active
        if predicate is not None:
            warp.active = before & np.asarray(predicate(warp), np.bool_)
        try:
            if warp.active.any():
                yield from step(warp)
        except CountError as fault:
            raise warp.machine.stop(Kind.BARRIER, str(fault), warp.place(at)) from fault
        warp.active = before

    return run
