"""Running a matrix instruction on waves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.formats import FloatFormat
from mfmadsl.emulator.instructions.matrix.layout import (
    BlockShape,
    chunk_of,
    input_rows,
    output_rows,
)
from mfmadsl.emulator.instructions.matrix.numbers import Numbers, read_numbers
from mfmadsl.emulator.instructions.matrix.sums import Rows, add_products
from mfmadsl.emulator.instructions.number import scales
from mfmadsl.emulator.machine.bits import Array, dtype_of
from mfmadsl.emulator.machine.denormal import without_denormals
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.text.operand import MODE, Literal, Register

_SCALE_GROUP = 32
_INPUT_DENORMALS = 1 << 4  # of float32, in the MODE register (CDNA3 ISA, section 4.2)


@dataclass(frozen=True)
class Factor:
    """A or B: its registers, and how they are read.

    `rows` is M or N; `blocks` says which block is read in place of each, `lanes` which lane. Of a
    sparse A, `shape` has the K that is stored.
    """

    register: Register
    form: FloatFormat
    shape: BlockShape
    rows: int
    blocks: tuple[int, ...]
    lanes: npt.NDArray[np.int64] | None = None
    negated: bool = False

    @property
    def words(self) -> int:
        """How many registers its elements fill."""
        elements = self.shape.k * self.rows * self.shape.blocks // LANES
        return elements * self.form.bits // 32


@dataclass(frozen=True)
class Matrix:
    """One instruction, D = A x B + C.

    `index` is the register of a sparse A's places, and which of the sets in it; `scales` are the
    operands with those of A and of B, and which of their bytes.
    """

    shape: BlockShape
    out: str
    how: Sum
    a: Factor
    b: Factor
    c: Register | Literal
    d: Register
    c_negated: bool = False
    index: tuple[Register, int] | None = None
    scales: tuple[tuple[Register | Literal, int], ...] = ()

    @property
    def has_right_registers(self) -> bool:
        """Whether each operand has as many as its elements fill."""
        shape = self.shape
        words = shape.m * shape.n * shape.blocks // LANES * (2 if self.out == "f64" else 1)
        single: list[Register | Literal] = [operand for operand, _ in self.scales]
        single += [self.index[0]] if self.index else []
        return (
            _count(self.d) == words
            and _count(self.c) in (words, None)
            and all(_count(factor.register) == factor.words for factor in (self.a, self.b))
            and all(_count(operand) in (1, None) for operand in single)
        )


def _count(operand: Register | Literal) -> int | None:
    """Registers of an operand; None of a constant."""
    return operand.count if isinstance(operand, Register) else None


def execute(waves: Waves, matrix: Matrix) -> None:
    """Change D. EXEC does not mask a matrix instruction: all lanes are written."""
    shape = matrix.shape
    a, b = _numbers(waves, matrix, matrix.a, "a"), _numbers(waves, matrix, matrix.b, "b")
    if matrix.index is not None:
        a = replace(a, values=in_full(a.values, _places(waves, matrix.a, *matrix.index)))
    if matrix.scales:
        a, b = (
            replace(numbers, values=numbers.values * _scales(waves, *scale, factor.rows, shape.k))
            for numbers, scale, factor in zip(
                (a, b), matrix.scales, (matrix.a, matrix.b), strict=True
            )
        )
    c, d = _accumulators(waves, matrix)
    add_products(matrix.how, a, b, c, d, (waves.count, shape.blocks, shape.m, shape.n, shape.k))
    if matrix.out == "f64":
        write_registers(waves, matrix.d, _as_words(d.elements))


def registers_of(waves: Waves, register: Register) -> npt.NDArray[np.uint32]:
    """The registers of an operand, (registers, waves, lanes)."""
    file = {"v": waves.vector, "a": waves.accumulation}[register.bank]
    found = file[register.index : register.index + register.count]
    if len(found) != register.count:  # code for the host checks nothing
        raise OperandError(f"{register} is beyond the registers of the kernel")
    return found


def write_registers(waves: Waves, register: Register, words: npt.NDArray[np.uint32]) -> None:
    """Change the registers of an operand in all lanes, whatever EXEC is."""
    registers_of(waves, register)[...] = words


def _numbers(waves: Waves, matrix: Matrix, factor: Factor, name: str) -> Numbers:
    """The numbers of A as (waves, blocks * K, M), or those of B as (waves, blocks * K, N)."""
    words = registers_of(waves, factor.register)
    if factor.lanes is not None:
        words = words[:, :, factor.lanes]
    chunk = chunk_of(factor.shape, factor.rows, factor.form.bits)
    lanes, items = input_rows(factor.shape, factor.rows, chunk, factor.blocks)
    numbers = read_numbers(words, factor.form, matrix.how, lanes, items, factor.rows, name)
    values = numbers.values
    if matrix.how.kind == "chain" and matrix.out == "f32":
        flushing = waves.scalar[MODE] & _INPUT_DENORMALS == 0
        if flushing.any():
            values[flushing] = without_denormals(values[flushing])
    return replace(numbers, values=-values) if factor.negated else numbers


def _accumulators(waves: Waves, matrix: Matrix) -> tuple[Rows, Rows]:
    """Where the rows of C and D lie: in the registers, unless those must not be changed yet."""
    dtype = dtype_of(matrix.out)
    lanes, items = output_rows(matrix.shape, matrix.out)
    count = matrix.d.count * 4 // dtype.itemsize
    if matrix.out == "f64":
        d = np.empty((count, waves.count, LANES), dtype)
    else:
        d = registers_of(waves, matrix.d).view(dtype)
    target = Rows(d, lanes + items * (d.strides[0] // d.itemsize), d.strides[1] // d.itemsize)
    if isinstance(matrix.c, Literal):
        bits = matrix.c.bits(8 * dtype.itemsize, floating=matrix.out != "i32")
        constant = np.array(bits, f"u{dtype.itemsize}").view(dtype)
        constant = -constant if matrix.c_negated else constant
        return Rows(np.full(matrix.shape.n, constant), np.zeros_like(lanes), 0), target
    words = registers_of(waves, matrix.c)
    if matrix.out == "f64":
        pairs = np.moveaxis(words.reshape(count, 2, waves.count, LANES), 1, -1)
        c = np.ascontiguousarray(pairs).view(dtype)[..., 0]
        c = np.ascontiguousarray(-c if matrix.c_negated else c)
    else:
        c = words.view(dtype)
        if matrix.c != matrix.d:  # they may overlap
            c = c.copy()
    return Rows(c, lanes + items * (c.strides[0] // c.itemsize), c.strides[1] // c.itemsize), target


def _as_words(result: Array) -> npt.NDArray[np.uint32]:
    pairs = result.view(np.uint32).reshape(*result.shape, 2)
    return np.moveaxis(pairs, -1, 1).reshape(-1, *result.shape[1:])


def _places(waves: Waves, a: Factor, register: Register, chosen: int) -> Array:
    """For each stored element of A its place among four neighbours, (waves, K / 2, M).

    A lane's index has two bits for each of its elements. Of several such sets in the register,
    abid says which it is, if cbsz is 0 (CDNA3 ISA, section 7.1.5).
    """
    m, stored = a.rows, a.shape.k
    count = stored * m // LANES
    sets = 32 // (2 * count)
    shifts = (2 * count * (chosen % sets) + 2 * np.arange(count)).astype(np.uint32)
    places = registers_of(waves, register)[0][..., None] >> shifts & np.uint32(3)
    grouped = places.reshape(waves.count, LANES // m, m, count).swapaxes(-1, -2)
    return grouped.reshape(waves.count, stored, m)


def in_full(stored: Array, places: Array) -> Array:
    """A sparse A with its zeros, along the last axis but one of (waves, K / 2, M): of four
    neighbouring k two are stored, at `places`."""
    count, k, m = stored.shape
    pairs = stored.reshape(count, k // 2, 2, 1, m)
    chosen = places.reshape(count, k // 2, 2, 1, m) == np.arange(4)[:, None]
    full = np.where(chosen, pairs, pairs.dtype.type(0)).sum(axis=2, dtype=stored.dtype)
    return np.ascontiguousarray(full.reshape(count, 2 * k, m))


def _scales(waves: Waves, operand: Register | Literal, byte: int, rows: int, k: int) -> Array:
    """The scale of every element of A (waves, K, M) or B (waves, K, N).

    The lane row + rows * g has that of the g-th 32 consecutive k of its row, in one of four bytes.
    The scale of a floating-point constant is its exponent (CDNA4 ISA, section 7.2.1).
    """
    groups = k // _SCALE_GROUP
    if isinstance(operand, Literal):
        bits = operand.bits(32, floating=True)
        code = bits >> 23 & 255 if operand.is_float else bits >> 8 * byte & 255
        return scales(np.full((1, 1, 1), code))
    codes = registers_of(waves, operand)[0] >> np.uint32(8 * byte) & np.uint32(255)
    by_row = scales(codes).reshape(waves.count, groups, rows)
    return np.repeat(by_row, _SCALE_GROUP, axis=1)
