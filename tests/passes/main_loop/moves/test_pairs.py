"""Neighbours of a store of which each is a field of a word of its own: they are computed two at a
time, and are what NumPy takes from the words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tvm import te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings

Array = npt.NDArray[Any]
ROWS, K, WORD = 64, 64, 8
"""Rows of B, a step of K, and fields of a word, four bits one above the other."""

ORDERS: dict[str, Callable[[Any], Any]] = {
    "awq": lambda row: row % 2 * 4 + row % 8 // 2,
    "spread": lambda row: row % 4 * 2 + row % 8 // 4,
    "turned": lambda row: 7 - row % 8,
}
"""Which field of a word a row has."""


def product(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    """C[i, j] = sum of A[i, k] * B[j, k]."""
    r = te.reduce_axis((0, K), "r")
    return te.compute(
        (K, ROWS),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        "C",
    )


def workload(order: str, mask: int, dtype: str, zero: bool) -> PrimFunc:
    """C[i, j] = sum of A[i, k] * B[j, k] whose B is fields of words of eight rows of a k, and with
    `zero` less a field of another word."""
    a = te.placeholder((K, K), "float16", "A")
    words = te.placeholder((K, ROWS // WORD), dtype, "W")
    zeros = te.placeholder((1, ROWS // WORD), dtype, "Z")

    def field(word: Any, j: Any) -> Any:
        down = (ORDERS[order](j) * 4).astype(dtype)
        return (word >> down & tirx.const(mask, dtype)).astype("float16")

    def element(j: Any, k: Any) -> Any:
        number = field(words[k, j // WORD], j)
        return number - field(zeros[k // K, j // WORD], j) if zero else number + number

    b = te.compute((ROWS, K), element, "B")
    return te.create_prim_func([a, words, zeros, product(a, b)])


def fields(words: Array, order: str, mask: int) -> Array:
    """[k, rows] of the fields of words [k, rows / 8]; of the highest there may be fewer bits."""
    places = 4 * ORDERS[order](np.arange(WORD, dtype=np.uint64))
    each: Array = words.astype(np.uint64)[:, :, None] >> places & np.uint64(mask)
    return each.reshape(len(words), -1).astype(np.float64)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize(
    ("order", "mask", "dtype", "arch", "permutations"),
    [
        ("awq", 15, "int32", "gfx942", 4),
        ("spread", 15, "uint32", "gfx90a", 4),
        ("turned", 7, "uint32", "gfx908", 4),
        ("awq", 31, "uint32", "gfx942", 4 + 4),  # of two rows they lie in both halves of a word
    ],
)
def test_fields_of_two_words(
    order: str, mask: int, dtype: str, arch: str, permutations: int, zero: bool
) -> None:
    """A is the identity, so that C has every element by itself."""
    function = workload(order, mask, dtype, zero)
    tiling = replace(gemm_tilings(function, arch=arch)[0], block=(32, 64), waves=(1, 2),
                     k_step=K, split_k=1, k_waves=1, stages=1, one_launch=False)  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch=arch, tiling=tiling), arch=arch)
    assert not kernel.remarks
    generator = np.random.default_rng(0)
    shapes = (K, ROWS // WORD), (1, ROWS // WORD)
    words, zeros = (generator.integers(0, 2**32, shape, np.uint32) for shape in shapes)
    c = np.full((K, ROWS), np.nan, np.float32)
    report = mfmadsl.sanitize(
        kernel, [np.eye(K, dtype=np.float16), words.view(dtype), zeros.view(dtype), c]
    )
    assert not report.faults
    found = fields(words, order, mask)
    assert np.array_equal(c, found - fields(zeros, order, mask) if zero else 2 * found)
    # Of eight rows of four k, of each two words, one puts the lower and one the upper halves
    # together; where fields are left alone one puts two numbers together.
    assert kernel.assembly.count("v_perm_b32") == permutations


def bytes_workload(dtype: str, transposed: bool, less: int) -> PrimFunc:
    """C[i, j] = sum of A[i, k] * B[j, k] whose B is bytes, less a number and doubled."""
    a = te.placeholder((K, K), "float16", "A")
    w = te.placeholder((ROWS, K) if transposed else (K, ROWS), dtype, "W")

    def element(j: Any, k: Any) -> Any:
        number = (w[j, k] if transposed else w[k, j]).astype("float16")
        return (number - tirx.const(less, "float16")) * tirx.const(2, "float16")

    b = te.compute((ROWS, K), element, "B")
    return te.create_prim_func([a, w, product(a, b)])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("less", [0, 8])
@pytest.mark.parametrize("arch", ["gfx908", "gfx942", "gfx950"])
def test_bytes_of_one_word_or_of_two(dtype: str, transposed: bool, less: int, arch: str) -> None:
    """A is the identity, and every byte is among the weights."""
    function = bytes_workload(dtype, transposed, less)
    tiling = replace(gemm_tilings(function, arch=arch)[0], block=(32, 64), waves=(1, 2),
                     k_step=K, split_k=1, k_waves=1, stages=1, one_launch=False)  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch=arch, tiling=tiling), arch=arch)
    weights = np.random.default_rng(0).permutation(ROWS * K).astype(np.uint8).view(dtype)
    weights = weights.reshape((ROWS, K) if transposed else (K, ROWS))
    c = np.full((K, ROWS), np.nan, np.float32)
    report = mfmadsl.sanitize(kernel, [np.eye(K, dtype=np.float16), weights, c])
    assert not report.faults
    found = 2 * (weights.astype(float) - less)
    assert np.array_equal(c, found.T if transposed else found)
    assert "sdwa" not in kernel.assembly
