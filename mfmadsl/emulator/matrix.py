"""Matrix-core instructions, written from the ISA manuals and from nothing else here.

The formulas are those of CDNA3 ISA, section 7.1.4 ("Dense matrices") and 7.1.5 ("Sparse matrices"):
a wave of 64 lanes holds B blocks of M x K by K x N; K_L consecutive k lie in one lane.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.machine import Machine, without_denormals
from mfmadsl.emulator.number import BITS, decode, scales
from mfmadsl.emulator.operand import Literal, Operand, Register
from mfmadsl.emulator.operation import Execute, Operation, reads_of
from mfmadsl.emulator.wave import LANES, Array, Waves

_MNEMONIC = re.compile(
    r"v_(?P<form>mfma|smfmac|mfma_scale)_(?P<out>f32|i32|f64)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
    r"(?:_\d+b)?_?(?P<kinds>f8f6f4|[a-z]+\d+(?:_[a-z]+\d+)?)(?:_1k)?(?:_e64)?"
)
_OUT = {"f32": np.float32, "i32": np.int32, "f64": np.float64}
_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")  # of f8f6f4, by cbsz for A and blgp for B
_SCALE_GROUP = 32
_CHUNK = 16  # consecutive k that a lane holds of eight-bit elements, where it holds 32


@dataclass(frozen=True)
class Shape:
    """M x N x K of one block, and how many blocks."""

    m: int
    n: int
    k: int
    blocks: int


@dataclass(frozen=True)
class _Matrix:
    """One instruction: what it multiplies, and how its modifiers change that."""

    form: OneOf["mfma", "smfmac", "mfma_scale"]
    shape: Shape
    a_kind: str
    b_kind: str
    out: str
    arch: str
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    negated: tuple[bool, bool, bool] = (False, False, False)


def compile_matrix(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a matrix instruction does on a chip, or None if it is not one that is known."""
    match = _MNEMONIC.fullmatch(instruction.name)
    known = {"cbsz", "abid", "blgp", "neg", "op_sel", "op_sel_hi"}
    if not match or set(instruction.modifiers) - known:
        return None
    target = instruction.operands[0]
    assert isinstance(target, Register)
    cbsz, abid, blgp = (int(instruction.modifiers.get(x, "0")) for x in ("cbsz", "abid", "blgp"))
    kinds = match["kinds"].split("_") * 2
    if match["kinds"] == "f8f6f4":
        kinds, cbsz, blgp = [_FORMATS[cbsz], _FORMATS[blgp]], 0, 0
    if not {kinds[0], kinds[1]} <= set(BITS):
        return None
    m, n, k = (int(match[d]) for d in ("m", "n", "k"))
    out_words = 2 if match["out"] == "f64" else 1
    blocks = target.count // out_words * LANES // (m * n)
    if not 1 <= blocks <= LANES // max(m, n):
        return None  # the registers of D are not those of such a tile
    neg = [flag == 1 for flag in instruction.flags("neg", 3)]
    matrix = _Matrix(
        match["form"],  # type: ignore[arg-type]
        Shape(m, n, k, blocks), kinds[0], kinds[1], match["out"], machine.arch, cbsz, abid, blgp,
        (neg[0], neg[1], neg[2]),
    )  # fmt: skip
    _, *sources = instruction.operands
    if matrix.form == "smfmac":
        a, b, index = sources
        execute = _multiply(matrix, target, a, b, target, lambda w: _sparse(w, matrix, a, index))
        sources.append(target)
    elif matrix.form == "mfma_scale":
        a, b, c, scale_a, scale_b = sources
        low, high = instruction.flags("op_sel", 2), instruction.flags("op_sel_hi", 2)
        chosen = [(scale_a, low[0] + 2 * high[0]), (scale_b, low[1] + 2 * high[1])]
        execute = _multiply(matrix, target, a, b, c, scale=chosen)
    else:
        a, b, c = sources
        execute = _multiply(matrix, target, a, b, c)
    reads = reads_of(*sources)
    return Operation(execute, "matrix", reads, (target,), whole_wave=True)


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


def lane_source(blgp: int) -> npt.NDArray[np.int64]:
    """For each lane the one whose B it gets (CDNA3 ISA, section 7.1.3)."""
    lanes = np.arange(LANES)
    if blgp in (1, 2):
        return lanes % 32 + 32 * (blgp - 1)
    if blgp == 3:
        return (lanes + 16) % LANES
    return lanes % 16 + 16 * (blgp - 4) if blgp >= 4 else lanes


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
    matrix: _Matrix,
    target: Register,
    a: Operand,
    b: Operand,
    c: Operand,
    expand: Callable[[Waves], Array] | None = None,
    scale: list[tuple[Operand, int]] | None = None,
) -> Execute:
    """D = A x B + C; `expand` gives a sparse A in full, `scale` the registers with the scales."""
    shape, out = matrix.shape, matrix.out
    order = _output_order(shape, out)
    # Products of bytes and their sums of 128 are exact in float32, and BLAS has no integers.
    compute = np.float64 if out == "f64" or scale else np.float32
    blocks = np.arange(shape.blocks) >> matrix.cbsz << matrix.cbsz | matrix.abid
    broadcast = matrix.form == "mfma" and matrix.cbsz
    lanes = lane_source(matrix.blgp)
    # gfx90a alone takes denormal halves and bfloats for 0, and gives none (PyTorch's notes on
    # numerical accuracy, "Reduced precision on MI200").
    flush = matrix.arch == "gfx90a" and matrix.a_kind in ("f16", "bf16")

    def execute(waves: Waves) -> None:
        left = expand(waves) if expand else _input(waves, a, matrix, shape.m, matrix.a_kind)
        left = left[:, blocks] if broadcast else left
        right = _input(waves, b, matrix, shape.n, matrix.b_kind, lanes if matrix.blgp else None)
        if flush:
            left, right = without_denormals(left), without_denormals(right)
        x: Array = left.astype(compute) * (-1 if matrix.negated[0] else 1)
        y: Array = right.astype(compute) * (-1 if matrix.negated[1] else 1)
        if scale:
            x = x * _scales(waves, *scale[0], shape.m, shape.k)
            y = y * _scales(waves, *scale[1], shape.n, shape.k)
        product = x @ y.swapaxes(-1, -2)
        scattered = product.reshape(waves.count, -1)[:, order].swapaxes(0, 1)
        accumulator = _accumulator(waves, c, out, order.shape[0])
        if matrix.negated[2]:
            accumulator = -accumulator
        result = np.ascontiguousarray(accumulator + scattered.astype(_OUT[out]))
        result = without_denormals(result) if flush else result
        # EXEC does not mask an MFMA: all lanes are written.
        file = waves.vector if target.bank == "v" else waves.accumulation
        file[target.index : target.index + target.count] = _as_words(result)

    return execute


def _words(waves: Waves, operand: Operand) -> Array:
    """The registers of an operand as (waves, lanes, words)."""
    assert isinstance(operand, Register)
    file = waves.vector if operand.bank == "v" else waves.accumulation
    return np.moveaxis(file[operand.index : operand.index + operand.count], 0, -1)


def _input(
    waves: Waves,
    operand: Operand,
    matrix: _Matrix,
    rows: int,
    kind: str,
    lanes: npt.NDArray[np.int64] | None = None,
) -> Array:
    """A as (waves, blocks, M, K), or B as (waves, blocks, N, K)."""
    words = _words(waves, operand)
    items = decode(words if lanes is None else words[:, lanes], kind, matrix.arch)
    wide = matrix.arch == "gfx950" and matrix.form != "smfmac"
    return _by_row(items, rows, matrix.shape.blocks, _CHUNK if wide and BITS[kind] == 8 else 0)


def _by_row(items: Array, rows: int, blocks: int, chunk: int = 0) -> Array:
    """Items (waves, lanes, K_L) as (waves, blocks, rows, K).

    With a `chunk`, a lane holds several runs of so many k, and the runs go round the lanes.
    """
    count, _, k_lane = items.shape
    groups = LANES // (rows * blocks)
    chunk = min(chunk or k_lane, k_lane)
    grouped = items.reshape(count, groups, blocks, rows, k_lane // chunk, chunk)
    return grouped.transpose(0, 2, 3, 4, 1, 5).reshape(count, blocks, rows, groups * k_lane)


def _sparse(waves: Waves, matrix: _Matrix, a: Operand, index: Operand) -> Array:
    """A in full: of four neighbouring k two are stored, at the places that the index names.

    A lane's index has two bits for each of its elements; abid says which of the sets in the
    register it is, if cbsz is 0.
    """
    stored = decode(_words(waves, a), matrix.a_kind, matrix.arch)
    count = stored.shape[-1]
    first = 0 if matrix.cbsz else matrix.abid * 2 * count
    shifts = (first + 2 * np.arange(count)).astype(np.uint32)
    places = _words(waves, index) >> shifts & np.uint32(3)
    values = _by_row(stored, matrix.shape.m, 1)
    at = _by_row(places, matrix.shape.m, 1)
    pairs = values.reshape(*values.shape[:-1], -1, 2)
    chosen = at.reshape(*pairs.shape)[..., None] == np.arange(4)
    full = np.where(chosen, pairs[..., None], 0).sum(axis=-2)
    return full.reshape(*values.shape[:-1], -1)


def _scales(waves: Waves, operand: Operand, byte: int, rows: int, k: int) -> Array:
    """The scale of every element of A (waves, 1, M, K) or B (waves, 1, N, K).

    The lane row + rows * g has that of the g-th 32 consecutive k of its row, in one of four bytes.
    """
    groups = k // _SCALE_GROUP
    if isinstance(operand, Literal):
        code = operand.bits(32, floating=False) >> 8 * byte & 255
        return scales(np.full((1, 1, rows, 1), code))
    codes = _words(waves, operand)[..., 0] >> np.uint32(8 * byte) & np.uint32(255)
    by_row = scales(codes).reshape(waves.count, 1, groups, rows).swapaxes(-1, -2)
    return np.repeat(by_row, _SCALE_GROUP, axis=-1)


def _accumulator(waves: Waves, operand: Operand, out: str, items: int) -> Array:
    """C as (items, waves, lanes); a constant stands for all of its elements."""
    dtype = np.dtype(_OUT[out])
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
