"""Matrix-core instructions, written from the ISA manual and from nothing else here.

The formulas are those of CDNA3 ISA, section 7.1.4 ("Dense matrices"): a wave of 64 lanes holds
B blocks of M x K by K x N; K_L consecutive k lie in one lane. They hold for every shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.operand import Literal, Operand, Register
from mfmadsl.emulator.wave import LANES, Array, Waves

Execute = Callable[[Waves], None]

_MNEMONIC = re.compile(
    r"v_mfma_(?P<out>f32|i32|f64)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:_\d+b)?"
    r"_?(?P<kind>f16|f32|f64|i8)(?:_e64)?"
)
_ELEMENT_BITS = {"i8": 8, "f16": 16, "f32": 32, "f64": 64}
_NUMPY = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32}


@dataclass(frozen=True)
class Shape:
    """M x N x K of one block, and how many blocks."""

    m: int
    n: int
    k: int
    blocks: int


def compile_matrix(instruction: Instruction) -> Execute | None:
    """What an MFMA does, or None if it is not one that is known."""
    match = _MNEMONIC.fullmatch(instruction.name)
    if not match or instruction.modifiers:
        return None
    target, a, b, c = instruction.operands
    assert isinstance(target, Register)
    m, n, k = (int(match[d]) for d in ("m", "n", "k"))
    out_words = _ELEMENT_BITS.get(match["out"], 32) // 32
    blocks = target.count // out_words * LANES // (m * n)
    return _multiply(target, a, b, c, Shape(m, n, k, blocks), match["kind"], match["out"])


def input_item(shape: Shape, rows: int, row: int, k: int, block: int) -> tuple[int, int]:
    """(lane, item) of A[row, k] of a block, or of B[k, row]; `rows` is M for A and N for B."""
    k_lane = shape.k * rows * shape.blocks // LANES
    return row + rows * (block + shape.blocks * (k // k_lane)), k % k_lane


def output_item(shape: Shape, out: str, i: int, j: int, block: int) -> tuple[int, int]:
    """(lane, item) of D[i, j] of a block."""
    h = 1 if out == "f64" else 4
    b_i = -(-LANES // (shape.n * shape.m // h))
    m_i = LANES // b_i // shape.n
    g = shape.m // (h * m_i)
    item = i % h + h * (i // (h * m_i) % g + g * (block // b_i))
    return j + shape.n * (block % b_i + b_i * (i // h % m_i)), item


@cache
def _output_order(shape: Shape, out: str) -> npt.NDArray[np.int64]:
    """(items, 64): which element of D, counted block, row, column, each lane holds."""
    items = shape.blocks * shape.m * shape.n // LANES
    order = np.zeros((items, LANES), dtype=np.int64)
    for block in range(shape.blocks):
        for i in range(shape.m):
            for j in range(shape.n):
                lane, item = output_item(shape, out, i, j, block)
                order[item, lane] = (block * shape.m + i) * shape.n + j
    return order


def _multiply(
    target: Register, a: Operand, b: Operand, c: Operand, shape: Shape, kind: str, out: str
) -> Execute:
    order = _output_order(shape, out)
    # Products of bytes and their sums of 128 are exact in float32, and BLAS has no integers.
    compute = np.float64 if kind == "f64" else np.float32

    def execute(waves: Waves) -> None:
        left: Array = _input(waves, a, shape, shape.m, kind).astype(compute)
        right: Array = _input(waves, b, shape, shape.n, kind).astype(compute)
        product = left @ right.swapaxes(-1, -2)
        scattered = product.reshape(waves.count, -1)[:, order].swapaxes(0, 1)
        accumulator = _accumulator(waves, c, out, order.shape[0])
        result = np.ascontiguousarray(accumulator + scattered.astype(_NUMPY[out]))
        # EXEC does not mask an MFMA: all lanes are written.
        file = waves.vector if target.bank == "v" else waves.accumulation
        file[target.index : target.index + target.count] = _as_words(result)

    return execute


def _input(waves: Waves, operand: Operand, shape: Shape, rows: int, kind: str) -> Array:
    """A as (waves, blocks, M, K), or B as (waves, blocks, N, K)."""
    assert isinstance(operand, Register)
    file = waves.vector if operand.bank == "v" else waves.accumulation
    words = file[operand.index : operand.index + operand.count]
    lanes = np.ascontiguousarray(np.moveaxis(words, 0, -1))  # waves, lanes, words
    items = lanes.view(_NUMPY[kind])
    k_lane = items.shape[-1]
    grouped = items.reshape(waves.count, shape.k // k_lane, shape.blocks, rows, k_lane)
    ordered = grouped.transpose(0, 2, 3, 1, 4)
    return ordered.reshape(waves.count, shape.blocks, rows, shape.k)


def _accumulator(waves: Waves, operand: Operand, out: str, items: int) -> Array:
    """C as (items, waves, lanes); a constant stands for all of its elements."""
    dtype = np.dtype(_NUMPY[out])
    if isinstance(operand, Literal):
        bits = operand.bits(8 * dtype.itemsize, floating=out != "i32")
        return np.array(bits, dtype=f"u{dtype.itemsize}").view(dtype)
    assert isinstance(operand, Register)
    file = waves.vector if operand.bank == "v" else waves.accumulation
    words = file[operand.index : operand.index + operand.count]
    if dtype.itemsize == 4:
        return words.view(dtype)
    pairs = words.reshape(items, 2, waves.count, LANES)
    return np.ascontiguousarray(np.moveaxis(pairs, 1, -1)).view(dtype)[..., 0]


def _as_words(result: Array) -> npt.NDArray[np.uint32]:
    if result.itemsize == 4:
        return result.view(np.uint32)
    pairs = result.view(np.uint32).reshape(*result.shape, 2)
    return np.moveaxis(pairs, -1, 1).reshape(-1, *result.shape[1:])
