"""A loop's first loads are under way before a workgroup waits for what it computes ahead of it."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import tirx
from tvm.tirx import (
    AllocBuffer,
    Bind,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    SeqStmt,
    Stmt,
    Var,
)

import mfmadsl
from mfmadsl.passes.main_loop.order.early_loads import with_early_loads
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import i32, ramp
from tests.schedule.matrix_core.test_row_statistics import SMALL, product, rms

X = tirx.decl_buffer((64,), "float32", "x", scope="global")
OUT = tirx.decl_buffer((64,), "float32", "out", scope="global")
SUM = tirx.decl_buffer((1,), "float32", "sum", scope="local")
SHARED = tirx.decl_buffer((64,), "float32", "shared", scope="shared")
FETCHED = tirx.decl_buffer((2,), "int32", "fetched", scope="local")
OTHER = tirx.decl_buffer((2,), "int32", "other", scope="local")
OFFSET = Var("offset", "int32")
MEET = Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))

READ = BufferStore(SUM, tirx.BufferLoad(X, [i32(0)]), [i32(0)])
WRITE = BufferStore(SHARED, tirx.BufferLoad(SUM, [i32(0)]), [i32(0)])


def _load(registers: Any, offset: Any = OFFSET) -> BufferStore:
    value = device.call("int32x2", "buffer.load.v2i32", X.data, i32(0), i32(64), offset, i32(0))
    return BufferStore(registers, value, [ramp(0, 2)])


def _use(registers: Any) -> BufferStore:
    value = tirx.reinterpret("float32", tirx.BufferLoad(registers, [i32(0)]))
    return BufferStore(SHARED, value, [i32(1)])


def _loop() -> For:
    return For(Var("t", "int32"), i32(0), i32(4), ForKind.SERIAL, _use(FETCHED))


def _parted(before: list[Stmt], *loop: Stmt) -> tuple[list[Stmt], list[Stmt]]:
    ahead, rest = with_early_loads(before, SeqStmt([*loop, _loop()]))
    assert isinstance(rest, SeqStmt)
    return ahead, list(rest.seq)


def _at(statement: Stmt, statements: list[Stmt]) -> list[int]:
    return [n for n, each in enumerate(statements) if each.same_as(statement)]


ALLOCATED, NAMED = AllocBuffer(FETCHED), Bind(OFFSET, i32(8))


def test_loads_go_between_the_loads_before_them_and_the_barrier() -> None:
    load, use = _load(FETCHED), _use(FETCHED)
    ahead, rest = _parted([READ, WRITE, MEET], ALLOCATED, NAMED, load, use)
    assert [_at(s, ahead) for s in (READ, ALLOCATED, NAMED, load)] == [[0], [1], [2], [3]]
    assert [_at(s, ahead) for s in (WRITE, MEET)] == [[5], [6]]
    assert _at(load, rest) == []
    assert _at(use, rest) == [0]


@pytest.mark.parametrize(
    "between",
    [
        [WRITE],  # no barrier
        [MEET, BufferStore(OUT, tirx.const(0, "float32"), [i32(0)])],
        [MEET, Evaluate(tirx.call_extern("int32", "a_flag_of_another_workgroup"))],
        [MEET, Evaluate(tirx.call_llvm_intrin("void", "llvm.amdgcn.s.sleep", i32(1)))],
    ],
)
def test_nothing_moves_without_a_barrier_nor_across_what_a_load_could_tell(
    between: list[Stmt],
) -> None:
    before = [READ, *between]
    ahead, rest = _parted(before, ALLOCATED, NAMED, _load(FETCHED))
    assert len(ahead) == len(before)
    assert len(rest) == 4


def test_nothing_passes_the_barrier_that_tells_lanes_of_what_was_stored() -> None:
    """The store comes with a load, ahead of which nothing goes anyway."""
    copied = BufferStore(OUT, tirx.BufferLoad(X, [i32(1)]), [i32(0)])
    ahead, rest = _parted([copied, MEET], ALLOCATED, NAMED, _load(FETCHED))
    assert len(ahead) == 2
    assert len(rest) == 4


def test_a_load_whose_place_is_made_before_the_loop_stays() -> None:
    place = Bind(OFFSET, tirx.Cast("int32", tirx.BufferLoad(SUM, [i32(0)])))
    ahead, rest = _parted([READ, WRITE, MEET, place], ALLOCATED, _load(FETCHED))
    assert len(ahead) == 4
    assert len(rest) == 3


def test_a_load_whose_place_is_read_of_the_lds_stays() -> None:
    place = Bind(OFFSET, tirx.Cast("int32", tirx.BufferLoad(SHARED, [i32(0)])))
    ahead, _ = _parted([READ, WRITE, MEET], ALLOCATED, place, _load(FETCHED))
    assert len(ahead) == 3


def test_a_second_load_into_registers_that_are_used_stays() -> None:
    first, second = _load(FETCHED), _load(FETCHED, i32(16))
    ahead, rest = _parted([READ, MEET], ALLOCATED, NAMED, first, _use(FETCHED), second)
    assert _at(first, ahead) == [3]
    assert _at(second, ahead) == []
    assert _at(second, rest)


def test_only_the_first_iteration_goes_ahead() -> None:
    """Each wave would have its second one before others their first."""
    first, second = _load(FETCHED), _load(OTHER)
    ahead, rest = _parted(
        [READ, MEET], ALLOCATED, AllocBuffer(OTHER), NAMED, first, device.keep_order(), second
    )
    assert _at(first, ahead)
    assert not _at(second, ahead)
    assert _at(second, rest)


def test_loads_in_a_branch_stay() -> None:
    branch = tirx.IfThenElse(i32(1).equal(1), _load(FETCHED), None)
    ahead, _ = _parted([READ, MEET], ALLOCATED, NAMED, branch)
    assert len(ahead) == 2


def test_weights_are_under_way_while_rows_are_added_up() -> None:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(product(rms, 1, 96, 1024), tiling=SMALL), "gfx942")
    lines = [line.split()[0] for line in kernel.assembly.splitlines() if line.split()]
    barrier = lines.index("s_barrier")
    assert any(name.startswith("buffer_load") for name in lines[:barrier])
    assert not any(name.startswith("ds_write_b128") for name in lines[:barrier])
