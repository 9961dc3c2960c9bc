"""Matrix instructions: which calls they are, and an order in which none waits for its sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeGuard

from tvm import ir, tirx
from tvm.ir import Call
from tvm.target.codegen import llvm_get_intrinsic_name
from tvm.tirx import BufferStore, Expr

from mfmadsl.language import library
from mfmadsl.model import Architecture, Intrinsic
from mfmadsl.passes.tir.expression import constant, elements_of, loads_of, name_of

_MATRIX = (".mfma.", ".smfmac.")
_USUAL = 32  # cycles of an instruction that the library does not have


def is_matrix(value: Expr) -> TypeGuard[Call]:
    """Whether a value is that of a matrix instruction, whose sums are one of its operands."""
    return isinstance(value, Call) and any(part in called(value) for part in _MATRIX)


def called(call: Call) -> str:
    """The function of LLVM, or of another module, that is called; "" for TVM's own."""
    if not call.args:
        return ""
    if name_of(call).startswith("call_llvm"):
        number = constant(call.args[0])
        return "" if number is None else str(llvm_get_intrinsic_name(number))
    first = call.args[0]
    return str(first.value) if isinstance(first, ir.StringImm) else ""


def cycles(value: Call, chip: Architecture) -> int:
    """How long a matrix core works on an instruction, at most, of those that are called alike."""
    return _cycles_on(chip.name).get(called(value), _USUAL)


@cache
def _cycles_on(chip: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in library().values():
        if isinstance(each, Intrinsic) and chip in each.chips:
            found[each.call] = max(found.get(each.call, 0), dict(each.cycles)[chip])
    return found


def dealt(computing: Sequence[BufferStore]) -> Iterator[BufferStore]:
    """Matrix instructions that add to the same sum as far apart as they can be."""
    run: list[BufferStore] = []
    for statement in computing:
        if is_matrix(statement.value):
            run.extend(_spelled(statement))
        else:
            yield from _by_turns(run)
            run = []
            yield statement
    yield from _by_turns(run)


def _spelled(statement: BufferStore) -> list[BufferStore]:
    """Matrix instructions whose sums are those of another one, one after the other."""
    chain: list[BufferStore] = []
    value = statement.value
    own = tirx.BufferLoad(statement.buffer, list(statement.indices))
    while True:
        assert is_matrix(value)
        inner = [n for n, argument in enumerate(value.args) if is_matrix(argument)]
        if not inner:
            chain.append(BufferStore(statement.buffer, value, list(statement.indices)))
            return chain[::-1]
        arguments = list(value.args)
        arguments[inner[0]], nested = own, arguments[inner[0]]
        rewritten = Call(value.op, arguments, attrs=value.attrs, ret_ty=value.ty)
        chain.append(BufferStore(statement.buffer, rewritten, list(statement.indices)))
        value = nested


def _by_turns(products: Sequence[BufferStore]) -> Iterator[BufferStore]:
    """One of each sum in turn; as they were if one takes the sums of another as its factor."""
    chains: dict[tuple[int, int], list[BufferStore]] = {}
    for statement in products:
        key = statement.buffer.__chandle__(), elements_of(statement.indices[0])[0]
        chains.setdefault(key, []).append(statement)
    if not are_apart(products):
        yield from products
        return
    for turn in range(max(map(len, chains.values()), default=0)):
        for chain in chains.values():
            if turn < len(chain):
                yield chain[turn]


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
