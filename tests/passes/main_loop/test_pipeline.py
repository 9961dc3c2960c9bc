"""`pipeline`: which loops are rewritten, and what it takes care of around them."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import tirx
from tvm.ir import Range
from tvm.tirx import AttrStmt, BufferStore, For, ForKind, IterVar, PrimFunc, SeqStmt, Var

from mfmadsl.model import architecture
from mfmadsl.passes.main_loop.pipeline import pipeline
from tests.passes.main_loop.analysis.test_refused_loops import (
    INSTRUCTIONS,
    LANE,
    OTHER,
    OUT,
    TILE,
    A,
    K,
    copy,
    multiply,
    read,
)

THREAD = IterVar(Range(0, 64), LANE, IterVar.ThreadIndex, "threadIdx.x")
CHIP = architecture("gfx942")


def annotated(*more: Any) -> For:
    """A loop of eight turns that the pipeline takes."""
    body = SeqStmt([copy(), *read(), multiply(), *more])
    return For(K, 0, 8, ForKind.SERIAL, body, None, {"mfmadsl.pipeline": 1})


def kernel(*statements: Any) -> PrimFunc:
    body = statements[0] if len(statements) == 1 else SeqStmt(list(statements))
    return PrimFunc([A, OUT], AttrStmt(THREAD, "thread_extent", tirx.const(64, "int32"), body))


def barriers(function: PrimFunc) -> int:
    return str(function).count("s.barrier")


@pytest.mark.parametrize(("kind", "more"), [(ForKind.SERIAL, 1), (ForKind.UNROLLED, 0)])
def test_a_loop_that_is_come_by_again_waits_until_all_have_left_it(kind: int, more: int) -> None:
    """Unrolled loops are several, each with tiles of its own."""
    once = pipeline(kernel(annotated()), CHIP, INSTRUCTIONS)
    again = pipeline(kernel(For(Var("r", "int32"), 0, 3, kind, annotated())), CHIP, INSTRUCTIONS)
    assert (once.fast, again.fast, once.remarks, again.remarks) == (1, 1, (), ())
    assert barriers(again.function) == barriers(once.function) + more


def test_a_tile_that_others_use_is_left_to_them() -> None:
    late = BufferStore(OUT, tirx.Cast("float32", tirx.BufferLoad(TILE, [LANE])), [LANE])
    found = pipeline(kernel(annotated(), late), CHIP, INSTRUCTIONS)
    assert (found.fast, found.remarks) == (
        0, ("loop `k` is left as it is: `tile` is used outside of it, too",)
    )  # fmt: skip
    assert barriers(found.function) == 0
    other = BufferStore(OTHER, tirx.const(0, "float16"), [LANE])
    assert pipeline(kernel(other, annotated()), CHIP, INSTRUCTIONS).fast == 1


def test_loops_without_the_annotation_stay() -> None:
    loop = annotated()
    plain = For(loop.loop_var, loop.min, loop.extent, loop.kind, loop.body, None, {})
    function = kernel(plain)
    found = pipeline(function, CHIP, INSTRUCTIONS)
    assert (found.fast, found.remarks) == (0, ())
    assert str(found.function) == str(function)


def test_a_loop_that_never_runs_is_left_out() -> None:
    """Nothing that is computed of a place in it has a bound."""
    count, known = Var("count", "int32"), Var("n", "int32")
    value = tirx.max(tirx.min(known, 63), 0)
    loop = For(K, 0, count // 64, ForKind.SERIAL, annotated().body, None, {"mfmadsl.pipeline": 1})
    found = pipeline(kernel(tirx.Bind(count, value), loop), CHIP, INSTRUCTIONS)
    assert (found.fast, found.remarks) == (0, ())
    assert "for" not in str(found.function)
