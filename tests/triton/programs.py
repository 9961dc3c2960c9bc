"""Kernels that are launched as users launch them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scaled(x, y, a, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + i, a * tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def many(pair, nothing, y, one, block: tl.constexpr):
    i = tl.arange(0, block)
    tl.store(y + i, tl.load(pair[0] + i) + pair[1] + one)


@triton.jit
def product(
    a, b, c, depth, a_row, a_column, b_row, b_column, c_row, c_column,
    m: tl.constexpr, n: tl.constexpr, k: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.program_id(0) * m + tl.arange(0, m), tl.arange(0, n)
    total = tl.zeros((m, n), tl.float32)
    for start in range(0, depth, k):
        inner = start + tl.arange(0, k)
        left = tl.load(a + rows[:, None] * a_row + inner[None, :] * a_column)
        right = tl.load(b + inner[:, None] * b_row + columns[None, :] * b_column)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * c_row + columns[None, :] * c_column, total)


@triton.autotune([triton.Config({"block": 256}, num_warps=w) for w in (1, 4)], key=["n"])
@triton.jit
def tuned(x, y, a, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + i, a * tl.load(x + i, mask=i < n), mask=i < n)


@triton.autotune(
    [triton.Config({"block": 256}, num_warps=w) for w in (1, 4)], key=["n"],
    restore_value=["y"], reset_to_zero=["total"],
)  # fmt: skip
@triton.jit
def accumulated(x, y, total, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.load(y + i, mask=i < n) + value, mask=i < n)
    tl.atomic_add(total, tl.sum(value))


@triton.jit
def told(x, count, block: tl.constexpr):
    place = tl.program_id(0) * block + tl.arange(0, block)
    tl.device_print("place ", place)
    value = tl.load(x + place, place < count, 0)
    tl.device_assert(value < 100, "too large")
    tl.store(x + place, value + 1, place < count)
