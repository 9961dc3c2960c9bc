"""Sums are filled with zeros while the first fetch is on its way, and are zeros still."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.script import from_source
from tvm.tirx import BufferStore

import mfmadsl
from mfmadsl.passes.main_loop.order.fill import filled_here, fills_at_end
from tests.passes.own_product import own_product
from tests.schedule.matrix_core.gemm.workloads import Workload

SUMS = tirx.decl_buffer((8,), "float32", "C", scope="local")
WHOLE = tirx.decl_buffer((8,), "int32", "D", scope="local")
DOUBLE = tirx.decl_buffer((8,), "float64", "E", scope="local")
MEMORY = tirx.decl_buffer((8,), "float32", "F", scope="global")


_SUMS_OF_A_LANE = 128 * 128 // (4 * 64)


def _fill(buffer: Any, index: Any, value: float = 0.0) -> BufferStore:
    return BufferStore(buffer, tirx.const(value, buffer.dtype), [index])


def _product(dtype: str, out: str) -> tirx.PrimFunc:
    return mfmadsl.matmul(128, 128, 512, dtype, out, b_transposed=True)


def _assembly(function: tirx.PrimFunc, arch: str = "gfx942", size: int = 2) -> list[str]:
    tiling = mfmadsl.gemm_tiling(function, arch=arch)
    tiling = replace(
        tiling, block=(128, 128), waves=(2, 2), split_k=1, k_waves=1, k_step=128 // size
    )
    schedule = mfmadsl.gemm_schedule(function, arch=arch, tiling=tiling)
    return mfmadsl.build(schedule, arch).assembly.splitlines()


def _zeros(lines: list[str]) -> Iterator[int]:
    """The lines that put zeros into registers, of the chips that fill two at once."""
    for number, line in enumerate(lines):
        if re.search(r"v_(mov_b64|pk_mov_b32)\w* v\[\d+:\d+\], (0|s)", line):
            yield number


def _first(lines: list[str], name: str) -> int:
    return next(number for number, line in enumerate(lines) if line.split()[:1] == [name])


@pytest.mark.parametrize(("dtype", "out"), [("float16", "float32"), ("int8", "int32")])
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_all_sums_are_filled_between_the_first_fetch_and_the_first_write_to_the_lds(
    dtype: str, out: str, arch: str
) -> None:
    lines = _assembly(_product(dtype, out), arch, np.dtype(dtype).itemsize)
    zeros = list(_zeros(lines))
    assert len(zeros) == _SUMS_OF_A_LANE // 2
    assert _first(lines, "buffer_load_dwordx4") < zeros[0]
    assert zeros[-1] < _first(lines, "ds_write_b128")


def test_a_wave_fills_its_sums_after_others_have_fetched() -> None:
    lines = _assembly(_product("float16", "float32"))
    raised, lowered = (n for n, line in enumerate(lines) if line.split()[:1] == ["s_setprio"])
    assert lines[raised].split()[1] == "1"
    assert lines[lowered].split()[1] == "0"
    zeros = list(_zeros(lines))
    assert raised < _first(lines, "buffer_load_dwordx4") < lowered < zeros[0]


@pytest.mark.parametrize(("dtype", "arch"), [("float16", "gfx908"), ("float64", "gfx942")])
def test_sums_in_a_file_of_their_own_or_of_two_words_are_filled_as_ever(
    dtype: str, arch: str
) -> None:
    out = "float64" if dtype == "float64" else "float32"
    lines = _assembly(_product(dtype, out), arch, np.dtype(dtype).itemsize)
    assert not [line for line in lines if line.split()[:1] == ["s_setprio"]]


def test_sums_of_a_loop_that_may_not_turn_are_filled_all_the_same() -> None:
    k: Any = te.var("k")
    function = Workload(128, 128, k).function()
    assert not [line for line in _assembly(function) if line.split()[:1] == ["s_setprio"]]


def test_sums_of_one_turn_take_no_registers_of_zeros() -> None:
    """LLVM gives a matrix instruction that adds to zeros the constant."""
    function = mfmadsl.matmul(64, 64, 16, "float16", "float32")
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function))
    assert "s_setprio" not in kernel.assembly
    assert re.search(r"v_mfma_\w+ v\[[\d:]+\], v\[[\d:]+\], v\[[\d:]+\], 0$", kernel.assembly, re.M)


def test_the_last_statements_are_taken() -> None:
    other = _fill(MEMORY, 0)
    first, second = _fill(SUMS, 1), _fill(WHOLE, 2)
    assert fills_at_end([]) == []
    assert fills_at_end([first, other]) == []
    assert fills_at_end([first, other, first, second]) == [first, second]


@pytest.mark.parametrize(
    "other",
    [
        _fill(MEMORY, 0),
        _fill(DOUBLE, 0),
        _fill(SUMS, 0, 1.0),
        _fill(SUMS, 0, -0.0),
        BufferStore(
            SUMS,
            tirx.Broadcast(tirx.const(0.0, "float32"), 2),
            [tirx.Ramp(tirx.const(0, "int32"), tirx.const(2, "int32"), 2)],
        ),
        _fill(SUMS, tirx.Var("i", "int32")),
        BufferStore(SUMS, tirx.BufferLoad(SUMS, [1]), [0]),
        tirx.Evaluate(0),
    ],
    ids=str,
)
def test_nothing_else_is_taken(other: tirx.Stmt) -> None:
    assert fills_at_end([other]) == []


def test_neighbours_are_filled_together() -> None:
    fills = [_fill(SUMS, 0), _fill(SUMS, 1), _fill(SUMS, 2), _fill(WHOLE, 3), _fill(SUMS, 5)]
    made = filled_here(fills)
    assert [str(s.buffer.name) for s in made] == ["C", "C", "D", "C"]
    first, *others = made
    assert first.value.ty.dtype == "float32x2"
    assert [int(s.indices[0]) for s in others] == [2, 3, 5]


def test_registers_that_are_no_neighbours_are_filled_by_themselves() -> None:
    made = filled_here([_fill(SUMS, 1), _fill(SUMS, 3), _fill(SUMS, 2)])
    assert [int(s.indices[0]) for s in made] == [1, 3, 2]


def test_a_vector_of_zeros_is_filled_whole() -> None:
    index = tirx.Ramp(tirx.const(2, "int32"), tirx.const(1, "int32"), 4)
    fill = BufferStore(SUMS, tirx.Broadcast(tirx.const(0.0, "float32"), 4), [index])
    assert fills_at_end([fill]) == [fill]
    indices = [s.indices[0] for s in filled_here([fill])]
    assert [int(i.base) for i in indices if isinstance(i, tirx.Ramp)] == [2, 4]


def test_sums_start_anew_in_each_tile_of_a_persistent_kernel() -> None:
    function = mfmadsl.matmul(64, 192, 128, "int8", "int32", b_transposed=True)
    tiling = replace(mfmadsl.gemm_tiling(function), block=(32, 32), k_waves=1, persistent=True)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, tiling=tiling))
    a = np.arange(64 * 128, dtype=np.int32).reshape(64, 128) % 7 - 3
    b = np.arange(192 * 128, dtype=np.int32).reshape(192, 128) % 5 - 2
    c = np.full((64, 192), 9, np.int32)
    mfmadsl.sanitize(kernel, [a.astype(np.int8), b.astype(np.int8), c])
    np.testing.assert_array_equal(c, a @ b.T)


def test_what_a_copy_asks_for_is_not_filled_after_it() -> None:
    """A register that is zeroed ahead of the loop need not be a sum: here it guards the copies,
    and is read ahead of them."""
    text = own_product(32).mod.script()
    sums = '        C_warp = T.sblock_alloc_buffer((4, 4, 64, 16), scope="warp")\n'
    loop = "                for k_0_0 in T.serial(4,"
    assert sums in text
    assert loop in text
    text = text.replace(
        sums, f'{sums}        skip = T.sblock_alloc_buffer((1,), "int32", scope="local")\n'
    )
    block = ['with T.sblock("skip"):', "    T.reads()", "    T.writes(skip[0])", "    skip[0] = 0"]
    text = text.replace(loop, "".join(f"{' ' * 16}{line}\n" for line in block) + loop, 1)
    for name in "AB":
        copied = f"{name}_shared[v0, v1] = {name}[v0, v1]\n"
        assert copied in text
        text = text.replace(f"T.reads({name}[v0, v1])", f"T.reads({name}[v0, v1], skip[0])", 1)
        text = text.replace(copied, f"if skip[0] == 0:\n{' ' * 44}{copied}", 1)
    kernel = mfmadsl.build(from_source(text))
    assert not kernel.remarks
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, (128, 128)).astype(np.float16) for _ in "ab")
    c = np.full((128, 128), 9, np.float32)
    mfmadsl.sanitize(kernel, [a, b, c])
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))
