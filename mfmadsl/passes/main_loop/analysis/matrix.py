"""Matrix instructions: which calls they are, and an order in which none waits for its sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from tvm import ir, tirx
from tvm.ir import Call
from tvm.target.codegen import llvm_get_intrinsic_name
from tvm.tirx import BufferStore, Expr

from mfmadsl.passes.tir.expression import constant, elements_of, loads_of, name_of

_BFLOAT = "bfloat."  # ahead of a function that takes vectors of bfloat, of which TIR has none


@dataclass(frozen=True)
class MatrixInstructions:
    """The matrix instructions that calls may be, by LLVM's functions: how many cycles a matrix core
    works on one, at most, of those that are called alike."""

    cycles: Mapping[str, int]

    def has(self, value: Expr) -> TypeGuard[Call]:
        """Whether a value is that of one, whose sums are one of its operands."""
        return isinstance(value, Call) and called(value) in self.cycles

    def time(self, value: Call) -> int:
        """Cycles of a call of one."""
        return self.cycles[called(value)]


def called(call: Call) -> str:
    """The function of LLVM, or of another module, that is called; "" for TVM's own."""
    if not call.args:
        return ""
    if name_of(call).startswith("call_llvm"):
        number = constant(call.args[0])
        return "" if number is None else str(llvm_get_intrinsic_name(number))
    first = call.args[0]
    return str(first.value).removeprefix(_BFLOAT) if isinstance(first, ir.StringImm) else ""


def dealt(
    computing: Sequence[BufferStore], instructions: MatrixInstructions
) -> Iterator[BufferStore]:
    """Matrix instructions that add to the same sum as far apart as they can be."""
    run: list[BufferStore] = []
    for statement in computing:
        if instructions.has(statement.value):
            run.extend(_spelled(statement, instructions))
        else:
            yield from _taking_sums_in_turn(run)
            run = []
            yield statement
    yield from _taking_sums_in_turn(run)


def _spelled(statement: BufferStore, instructions: MatrixInstructions) -> list[BufferStore]:
    """Matrix instructions whose sums are those of another one, one after the other."""
    chain: list[BufferStore] = []
    value = statement.value
    own = tirx.BufferLoad(statement.buffer, list(statement.indices))
    while True:
        assert instructions.has(value)
        inner = [n for n, argument in enumerate(value.args) if instructions.has(argument)]
        if not inner:
            chain.append(BufferStore(statement.buffer, value, list(statement.indices)))
            return chain[::-1]
        arguments = list(value.args)
        arguments[inner[0]], nested = own, arguments[inner[0]]
        rewritten = Call(value.op, arguments, attrs=value.attrs, ret_ty=value.ty)
        chain.append(BufferStore(statement.buffer, rewritten, list(statement.indices)))
        value = nested


def _taking_sums_in_turn(products: Sequence[BufferStore]) -> Iterator[BufferStore]:
    """One of each sum in turn; as they were if one takes the sums of another as its factor."""
    chains: dict[tuple[int, int], list[BufferStore]] = {}
    for statement in products:
        key = statement.buffer.__chandle__(), elements_of(statement.indices[0])[0]
        chains.setdefault(key, []).append(statement)
    if not are_apart(products):
        yield from products
        return
    for iteration in range(max(map(len, chains.values()), default=0)):
        for chain in chains.values():
            if iteration < len(chain):
                yield chain[iteration]


def are_apart(products: Sequence[BufferStore]) -> bool:
    """Whether no matrix instruction takes the sums of another one as its factor."""
    targets = {s.buffer.__chandle__() for s in products}
    return all(
        load.source.__chandle__() not in targets
        or (
            load.source.same_as(s.buffer)
            and elements_of(load.indices[0]) == elements_of(s.indices[0])
        )
        for s in products
        for load in loads_of(s.value)
    )
