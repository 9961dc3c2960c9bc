"""`main_loop`: what an annotated loop may hold, statement by statement, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import (
    BufferLoad,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Var,
)

from mfmadsl.model import architecture
from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel, Threads
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.main_loop.analysis.parsed import MainLoop, main_loop
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import elements_of

INSTRUCTIONS = MatrixInstructions({"llvm.amdgcn.mfma.f32.16x16x16f16": 16})
K, M, LANE = (Var(name, "int32") for name in ("k", "m", "lane"))


def buffer(name: str, scope: str, dtype: str = "float16", length: int = 4096) -> Any:
    return tirx.decl_buffer((length,), dtype, name, scope=scope)


A = buffer("A", "global")
OUT = buffer("out", "global", "float32")
TILE, OTHER = (buffer(name, "shared") for name in ("tile", "other"))
HELD, MORE, MADE = (buffer(name, "local", length=16) for name in ("held", "more", "made"))
SUMS = buffer("sums", "local", "float32", 16)


def i32(number: int) -> Any:
    return tirx.const(number, "int32")


def copy(tile: Any = TILE, place: Any = LANE) -> Any:
    return BufferStore(tile, BufferLoad(A, [K * 64 + LANE]), [place])


def read(fragment: Any = HELD, number: int = 0, tile: Any = TILE) -> list[Any]:
    """Four elements of a fragment."""
    return [
        BufferStore(fragment, BufferLoad(tile, [LANE + e]), [i32(4 * number + e)]) for e in range(4)
    ]


def vector(of: Any, first: int) -> Any:
    return BufferLoad(of, [tirx.Ramp(i32(first), i32(1), 4)])


def loaded(fragment: Any = HELD) -> list[Any]:
    """A fragment that comes from memory."""
    places = ((number, BufferLoad(A, [K * 256 + LANE * 4 + number])) for number in range(4))
    return [BufferStore(fragment, value, [i32(number)]) for number, value in places]


def multiply(fragment: Any = HELD, number: int = 0, sums: int = 0) -> Any:
    factor = vector(fragment, 4 * number)
    value = tirx.call_llvm_pure_intrin(
        "float32x4", "llvm.amdgcn.mfma.f32.16x16x16f16", factor, factor, vector(SUMS, sums), 0, 0, 0
    )
    return BufferStore(SUMS, value, [tirx.Ramp(i32(sums), i32(1), 4)])


def taken(*statements: Any, start: int = 0, stages: int = 1) -> MainLoop:
    body = SeqStmt([each for s in statements for each in (s if isinstance(s, list) else [s])])
    loop = For(K, start, 8, ForKind.SERIAL, body, None, {"mfmadsl.pipeline": stages})
    analyzer, threads = Analyzer(), Threads({"threadIdx.x": LANE}, {"threadIdx.x": 64})
    function = PrimFunc([A, OUT], loop)
    kernel = EnclosingKernel(function, threads, analyzer, architecture("gfx942"), INSTRUCTIONS)
    return main_loop(kernel, loop, analyzer)


def test_register_steps_are_reads_and_what_is_computed_after_them() -> None:
    loop = taken(copy(), read(), multiply(), read(), multiply(sums=4), multiply(sums=8))
    assert len(loop.copies) == 1
    assert [(len(step.reads), len(step.computing)) for step in loop.steps] == [(4, 1), (4, 2)]
    names = [step.reads[0].buffer.name for step in loop.steps]
    assert names == ["held", "held_1"]  # so that the second may be read under the first
    assert all(INSTRUCTIONS.has(s.value) for step in loop.steps for s in step.computing)
    assert loop.is_sum


def test_what_is_computed_with_the_turn_is_no_sum() -> None:
    last = BufferStore(MADE, tirx.Cast("float16", K), [i32(0)])
    assert not taken(copy(), read(), multiply(), last).is_sum


def test_a_branch_around_a_copy_is_a_guard() -> None:
    loop = taken(IfThenElse(LANE < 32, copy(), None), read(), multiply())
    assert isinstance(loop.copies[0], IfThenElse)


def test_matrix_instructions_that_add_to_one_sum_are_dealt_apart() -> None:
    order = (0, 0, 4, 4)
    computing = taken(copy(), read(), *(multiply(sums=s) for s in order)).steps[0].computing
    assert [elements_of(s.indices[0])[0] for s in computing] == [0, 4, 0, 4]


def test_a_product_that_takes_the_sums_of_another_stays_where_it_is() -> None:
    chained = multiply(sums=4)
    value = chained.value
    arguments = list(value.args)
    arguments[3] = vector(SUMS, 0)  # starts from another sum
    other = BufferStore(
        SUMS, tirx.call_intrin("float32x4", value.op, *arguments), list(chained.indices)
    )
    computing = taken(copy(), read(), multiply(), multiply(), other).steps[0].computing
    assert [elements_of(s.indices[0])[0] for s in computing] == [0, 0, 4]


def test_fragments_that_are_read_first_may_be_used_to_the_end() -> None:
    loop = taken(copy(), read(), multiply(), read(MORE), multiply(), multiply(MORE, sums=4))
    assert len(loop.steps) == 2


def test_a_step_without_matrix_instructions_is_part_of_the_one_before() -> None:
    scaled = BufferStore(MADE, BufferLoad(MORE, [i32(0)]), [i32(0)])
    (step,) = taken(copy(), read(), multiply(), read(MORE), scaled).steps
    assert {r.buffer.name for r in step.reads} == {HELD.name, MORE.name}


def test_fragments_from_memory_are_copies_of_a_loop_without_stages() -> None:
    loop = taken(loaded(), multiply(), stages=0)
    assert (len(loop.copies), [len(step.reads) for step in loop.steps]) == (4, [0])


def test_a_step_that_reads_anew_what_the_one_before_uses_stays_apart() -> None:
    scaled = BufferStore(MADE, BufferLoad(HELD, [i32(0)]), [i32(0)])
    loop = taken(copy(), read(), multiply(), read(MORE), multiply(), read(), scaled)
    assert [{r.buffer.name for r in step.reads} for step in loop.steps] == [
        {"held"}, {"more_1"}, {"held_2"},
    ]  # fmt: skip


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "loads fragments beside tiles": (lambda: taken(copy(), loaded(), multiply()), "has no place"),
    "fills tiles beside fragments": (
        lambda: taken(copy(), loaded(), multiply(), stages=0), "has no place in it"),
    "reads tiles without stages": (
        lambda: taken(loaded(MORE), read(), multiply(), stages=0), "reads LDS that it does not"),
    "starts late": (lambda: taken(copy(), read(), multiply(), start=1), "does not start at 0"),
    "copies nothing": (lambda: taken(read(), multiply()), "has no copies into the LDS"),
    "reads nothing": (lambda: taken(copy(), multiply()), "no reads of the LDS"),
    "multiplies nothing": (
        lambda: taken(copy(), read(), BufferStore(SUMS, tirx.const(0, "float32"), [i32(0)])),
        "no matrix instruction"),
    "fills a tile after it is read": (
        lambda: taken(copy(), read(), copy(place=LANE + 64), multiply()),
        "not all copies into `tile` come before its reads"),
    "reads what another fills": (
        lambda: taken(copy(), read(tile=OTHER), multiply()), "reads LDS that it does not fill"),
    "stores to memory": (
        lambda: taken(copy(), read(), multiply(),
                      BufferStore(OUT, BufferLoad(SUMS, [i32(0)]), [K])),
        "has no place in it"),
    "branches": (
        lambda: taken(copy(), *[IfThenElse(K < 3, s, None) for s in read()], multiply()),
        "it has a branch"),
    "chooses": (
        lambda: taken(IfThenElse(K < 3, copy(), copy(place=LANE + 64)), read(), multiply()),
        "has a IfThenElse in it"),
    "has an effect": (
        lambda: taken(copy(), Evaluate(tirx.call_extern("int32", "f")), read(), multiply()),
        "has an effect"),
    "has a loop of a length that varies": (
        lambda: taken(For(M, 0, K, ForKind.SERIAL, copy()), read(), multiply()), "no fixed extent"),
    "is too long": (
        lambda: taken(For(M, 0, 20001, ForKind.SERIAL, copy()), read(), multiply()),
        "20006 statements when unrolled"),
    "ends with a read": (
        lambda: taken(copy(), read(), multiply(), read(MORE)), "nothing is computed with what"),
    "computes a fragment": (
        lambda: taken(copy(), read(), multiply(),
                      BufferStore(HELD, tirx.const(0, "float16"), [i32(0)])),
        "`held` is read from the LDS, and computed"),
    "uses half of a fragment": (
        lambda: taken(copy(), read()[:2], multiply()), "used before, or only partly, it is read"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_loop_that_is_left_as_it_is(name: str) -> None:
    make, reason = REFUSED[name]
    with pytest.raises(NotUnderstoodError, match=reason):
        make()
