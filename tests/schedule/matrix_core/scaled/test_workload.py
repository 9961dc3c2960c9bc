"""What a product of scaled operands says by itself, without any instruction: OCP's numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tvm
from numpy.typing import NDArray

import mfmadsl
from tests.schedule.matrix_core.scaled.operands import BITS, GROUP, packed, values_of

FP4 = "float4_e2m1fn"
K = 64


def finite_codes(dtype: str) -> NDArray[np.uint8]:
    every = np.arange(1 << BITS[dtype], dtype=np.uint8)
    numbers: NDArray[np.float64] = every.view(getattr(ml_dtypes, dtype)).astype(np.float64)
    return every[np.isfinite(numbers)]


@pytest.mark.parametrize("side", [0, 1], ids="AB")
@pytest.mark.parametrize("dtype", BITS)
def test_each_code_is_its_number(dtype: str, side: int) -> None:
    """A row for each, denormal ones among them, which has it somewhere along k and zeros else; the
    other side is a row of ones."""
    codes = finite_codes(dtype)
    rows = np.arange(len(codes))
    placed = np.zeros((len(codes), K), np.uint8)
    placed[rows, 5 * rows % K] = codes
    scales = (120 + (rows[:, None] + np.arange(K // GROUP)) % 16).astype(np.uint8)
    octets, one = packed(placed, BITS[dtype]), np.full((1, K // 2), 0x22, np.uint8)
    pairs = [(octets, scales, dtype), (one, np.full((1, K // GROUP), 127, np.uint8), FP4)]
    (a, a_scales, a_type), (b, b_scales, b_type) = pairs[::-1] if side else pairs
    run = tvm.compile(mfmadsl.scaled_matmul(len(a), len(b), K, a_type, b_type), target="llvm")
    c = tvm.runtime.tensor(np.full((len(a), len(b)), np.nan, np.float32))
    run(*map(tvm.runtime.tensor, (a, b, a_scales, b_scales)), c)
    expected = values_of(octets, scales, dtype).sum(axis=1)
    np.testing.assert_array_equal(c.numpy().reshape(-1), expected.astype(np.float32))
