"""What an operand that is computed on its way is made of, as its tiling is chosen by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.model import architecture
from mfmadsl.schedule.product.normalise import normalise, product_block
from mfmadsl.schedule.product.prologue import Prologue, SourceArray

N, K = 64, 512


def workload(
    arrays: Mapping[str, tuple[tuple[int, ...], str]], value: Callable[..., Any]
) -> PrimFunc:
    """A product whose B is computed of some arrays."""
    a = te.placeholder((32, K), "float16", "A")
    given = [te.placeholder(shape, dtype, name) for name, (shape, dtype) in arrays.items()]
    b = te.compute((N, K), lambda j, k: value(*given, j, k), "B")
    r = te.reduce_axis((0, K), "k")
    c = te.compute(
        (32, N),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        "C",
    )
    return te.create_prim_func([a, *given, c])


def of_b(function: PrimFunc) -> Prologue | None:
    sch = Schedule(tvm.IRModule({"main": function}))
    first, second = normalise(sch, product_block(sch)).prologues
    assert first is None
    return second


def nibble(q: Any, j: Any, k: Any) -> Any:
    return q[j, k // 8] >> (k % 8 * 4).astype("uint32") & tirx.const(15, "uint32")


def test_four_bits_with_a_scale_of_each_group() -> None:
    arrays = {"Q": ((N, K // 8), "uint32"), "S": ((N, K // 128), "float16")}
    found = of_b(
        workload(arrays, lambda q, s, j, k: nibble(q, j, k).astype("float16") * s[j, k // 128])
    )
    assert found is not None
    assert found.stored == (
        SourceArray(4.0, 1 / 8, 1.0, along_rows=False),
        SourceArray(2.0, 1 / 128, 1.0, along_rows=False),
    )
    assert [each.k_bytes for each in found.stored] == [4 / 8, 2 / 128]
    assert found.group == 128


def half(word: Any, at: Any) -> Any:
    """The float16 of a nibble of a word."""
    down = (at % 8 * 4).astype("uint32")
    return (word >> down & tirx.const(15, "uint32")).astype("float16")


def gptq(q: Any, z: Any, j: Any, k: Any) -> Any:
    """Eight k of a row lie in a word, and the zero points of eight rows."""
    return half(q[k // 8, j], k) - half(z[k // 128, j // 8], j)


def awq(q: Any, z: Any, j: Any, k: Any) -> Any:
    """Eight rows of a k lie in a word."""
    return half(q[k, j // 8], j) - half(z[k // 128, j // 8], j)


@pytest.mark.parametrize(
    ("value", "shape", "words", "lines"),
    [
        (gptq, (K // 8, N), SourceArray(4.0, 1 / 8, 1.0, along_rows=True), 8),
        (awq, (K, N // 8), SourceArray(4.0, 1.0, 1 / 8, along_rows=True), 64),
    ],
)
def test_words_whose_rows_lie_together(
    value: Callable[..., Any], shape: tuple[int, int], words: SourceArray, lines: int
) -> None:
    found = of_b(workload({"Q": (shape, "uint32"), "Z": ((K // 128, N // 8), "uint32")}, value))
    zeros = SourceArray(4.0, 1 / 128, 1 / 8, along_rows=True)
    assert found is not None
    assert found.stored == (words, zeros)
    # Of 32 rows and 64 of K; of zero points that is a part of a line.
    assert words.line_bytes(32, 64, 128) == lines * 128
    assert zeros.line_bytes(32, 64, 128) == 128


@pytest.mark.parametrize(
    ("value", "shape", "axis", "packed"),
    [(gptq, (K // 8, N), "j", {"k": 8}), (awq, (K, N // 8), "j", {"j": 8})],
)
def test_neighbours_that_are_made_of_one_word(
    value: Callable[..., Any], shape: tuple[int, int], axis: str, packed: dict[str, int]
) -> None:
    given = {"Q": (shape, "uint32"), "Z": ((K // 128, N // 8), "uint32")}
    sch = Schedule(tvm.IRModule({"main": workload(given, value)}))
    memory = normalise(sch, product_block(sch)).memory[1]
    assert (memory.axis, memory.packed, memory.computed) == (axis, packed, True)


def test_what_does_not_change_along_k_is_left_out() -> None:
    arrays = {"Q": ((N, K), "int8"), "S": ((N,), "float16")}
    found = of_b(workload(arrays, lambda q, s, j, k: q[j, k].astype("float16") * s[j]))
    assert found == Prologue((SourceArray(1.0, 1.0, 1.0, along_rows=False),), 1.5)


def test_a_place_that_is_read_counts_as_one_for_each_k() -> None:
    arrays = {"Q": ((N, K), "float16"), "P": ((K,), "int32")}
    found = of_b(workload(arrays, lambda q, p, j, k: q[j, p[k]] * tirx.const(2, "float16")))
    assert found is not None
    indices, elements = found.stored
    assert (indices.place_bytes, indices.per_k) == (4.0, 1.0)
    assert indices.per_row < 0.01  # all rows have them in common
    assert elements == SourceArray(2.0, 1.0, 1.0, along_rows=False)


def test_an_argument_has_none() -> None:
    assert of_b(mfmadsl.matmul(32, N, K, "float16", "float32", b_transposed=True)) is None


@pytest.mark.parametrize(
    ("weights", "dtype", "arch"),
    [
        ("awq", "float16", "gfx942"),
        ("gptq", "bfloat16", "gfx950"),
        ("mxfp4", "bfloat16", "gfx942"),
    ],
)
def test_llvm_makes_about_as_many_instructions(weights: str, dtype: str, arch: str) -> None:
    k, block, k_step = 1024, (16, 64), 128
    function = mfmadsl.quantised_matmul(16, block[1], k, weights, dtype)
    tiling = replace(mfmadsl.gemm_tiling(function, arch=arch), block=block, waves=(1, 4),
                     k_step=k_step, k_waves=1, split_k=1, one_launch=False)  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch=arch, tiling=tiling), arch=arch)
    loop = kernel.assembly.partition(".LBB0_1:")[2].partition("s_cbranch")[0]
    steps = loop.count("s_barrier") / 2
    elements = steps * block[1] * k_step / (64 * 4)
    made = len(re.findall(r"^\s+v_(?!mfma)", loop, re.MULTILINE)) / elements
    found = of_b(function)
    assert found is not None
    assert made == pytest.approx(found.work_on(architecture(arch)), rel=0.25)


@pytest.mark.parametrize(("arch", "rows"), [("gfx942", 1), ("gfx942", 16), ("gfx950", 16)])
def test_of_few_rows_waves_share_the_steps_of_small_weights(arch: str, rows: int) -> None:
    """One wave would take longer to compute the elements than memory to bring them."""
    shape = rows, 14336, 4096
    a = te.placeholder((shape[0], shape[2]), "float16", "A")
    q = te.placeholder((shape[1], shape[2] // 8), "uint32", "Q")
    b = te.compute((shape[1], shape[2]), lambda j, k: nibble(q, j, k).astype("float16"), "B")
    r = te.reduce_axis((0, shape[2]), "k")
    c = te.compute(
        shape[:2],
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        "C",
    )
    tiling = mfmadsl.gemm_tiling(te.create_prim_func([a, q, c]), arch=arch)
    assert tiling.k_waves >= 2
    assert tiling.k_step >= 256
