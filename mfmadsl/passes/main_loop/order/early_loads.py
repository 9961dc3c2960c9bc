"""A loop's first loads from memory, ahead of barriers at which what stands before it waits.

A workgroup that adds up the squares of its rows before the main loop waits for its waves twice, and
the memory does nothing meanwhile. What the loop loads first goes to registers, and depends on none
of that, so it is under way by then. It comes behind the loads that are there already: lanes wait
for loads in their order, and those are needed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import tvm_ffi
from tvm.ir import Call, Op, TensorLoad
from tvm.tirx import (
    AllocBuffer,
    AttrStmt,
    Bind,
    Buffer,
    BufferStore,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    Var,
    While,
)

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import (
    among,
    calls_of,
    loads_of,
    name_of,
    scope_of,
    variables_of,
)
from mfmadsl.passes.tir.walk import walk

_SYNC = "tvm_storage_sync"
_PURE = 1  # of TVM's kinds of effects: a function of its arguments


def with_early_loads(before: Sequence[Stmt], loop: Stmt) -> tuple[list[Stmt], Stmt]:
    """What stands before a rewritten loop, with the loop's first loads in it, and the rest of the
    loop; both as they are where no barrier lies between, or where what stands before it may write
    to memory: the barrier may be what tells other lanes so."""
    place = _behind_loads(before)
    crossed = before[place:]
    if not any(_waits(each) for each in crossed) or not all(_only_reads(each) for each in before):
        return list(before), loop
    parted = _Parted()
    for each in crossed:
        parted.stay(each)
    statements = _flat(loop)
    for number, statement in enumerate(statements):
        ends = parted.loads and _is(statement, device.keep_order())
        if ends or isinstance(statement, For | IfThenElse | While | AttrStmt):
            parted.rest += statements[number:]
            break
        parted.take(statement)
    if not parted.loads:
        return list(before), loop
    early = [*parted.early, device.keep_order()]
    return [*before[:place], *early, *crossed], SeqStmt(parted.rest)


@dataclass
class _Parted:
    """The statements at the start of a loop: those that go ahead, and the `rest`.

    `names` and `held` are the variables and the buffers of statements that stay where they are.
    """

    early: list[Stmt] = field(default_factory=list)
    rest: list[Stmt] = field(default_factory=list)
    names: list[Var] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    loads: int = 0

    def take(self, statement: Stmt) -> None:
        """Decide on the next statement of the loop."""
        if _is(statement, device.keep_order()):  # the scheduler alone minds it
            if self.loads:
                self.early.append(statement)
            self.rest.append(statement)
        elif self._goes(statement):
            self.loads += isinstance(statement, BufferStore)
            self.early.append(statement)
        else:
            self.stay(statement)
            self.rest.append(statement)

    def stay(self, statement: Stmt) -> None:
        """Note what later statements may depend on."""

        def note(node: Bind | AllocBuffer | BufferStore | TensorLoad) -> None:
            if isinstance(node, Bind):
                self.names.append(node.var)
            else:
                buffer = node.source if isinstance(node, TensorLoad) else node.buffer
                self.held.add(buffer.__chandle__())

        walk(statement, ((Bind, AllocBuffer, BufferStore, TensorLoad), note))

    def _goes(self, statement: Stmt) -> bool:
        """Whether it makes registers or names, or loads, and of nothing that stays."""
        if isinstance(statement, AllocBuffer):
            return scope_of(statement.buffer) == "local"
        if isinstance(statement, BufferStore):
            if not self._is_free(statement.buffer) or not _is_load(statement):
                return False
        elif not isinstance(statement, Bind) or any(_has_effect(c) for c in calls_of(statement)):
            return False
        return all(self._is_free(load.source) for load in loads_of(statement)) and not any(
            among(variable, self.names) for variable in variables_of(statement)
        )

    def _is_free(self, buffer: Buffer) -> bool:
        return scope_of(buffer) == "local" and buffer.__chandle__() not in self.held


def _flat(statement: Stmt) -> list[Stmt]:
    if isinstance(statement, SeqStmt):
        return [each for part in statement.seq for each in _flat(part)]
    return [statement]


def _behind_loads(statements: Sequence[Stmt]) -> int:
    """How many statements there are up to the last that loads from memory."""
    return max(
        (number + 1 for number, each in enumerate(statements) if _reads_memory(each)), default=0
    )


def _reads_memory(statement: Stmt) -> bool:
    loads = any(scope_of(load.source) == "global" for load in loads_of(statement))
    return loads or any(_is_buffer_load(call) for call in calls_of(statement))


def _is_load(store: BufferStore) -> bool:
    return isinstance(store.value, Call) and _is_buffer_load(store.value)


def _is_buffer_load(call: Call) -> bool:
    return device.device_function(call).startswith("buffer.load.")


def _waits(statement: Stmt) -> bool:
    return any(name_of(call) == _SYNC for call in calls_of(statement)) or _is(
        statement, device.barrier()
    )


def _is(statement: Stmt, other: Stmt) -> bool:
    return bool(tvm_ffi.structural_equal(statement, other))


def _has_effect(call: Call) -> bool:
    if not isinstance(call.op, Op):
        return True
    kind = call.op.get_attr("TCallEffectKind")  # type: ignore[attr-defined]
    return kind is None or int(kind) > _PURE


def _only_reads(statement: Stmt) -> bool:
    """Whether it surely writes to no memory but registers and the LDS."""
    stores: list[BufferStore] = []
    walk(statement, (BufferStore, stores.append))
    if any(scope_of(store.buffer) == "global" for store in stores):
        return False
    calls = [call for call in calls_of(statement) if _has_effect(call)]
    return _is(statement, device.barrier()) or all(
        name_of(call) == _SYNC or _is_buffer_load(call) for call in calls
    )
