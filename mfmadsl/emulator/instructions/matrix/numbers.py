"""A and B of a matrix instruction: from registers to numbers in the order of their indices.

The code for the host reads a row of lanes at a time: lanes that follow one another hold elements of
rows of A, or columns of B, that follow one another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.formats import DOUBLE, INTEGER, FloatFormat
from mfmadsl.emulator.instructions.matrix.host_code import (
    F32,
    I32,
    I64,
    TYPES,
    Vector,
    compile_function,
    load_scalar,
    load_vector,
    loop,
    pointer,
    splat,
    store_vector,
)
from mfmadsl.emulator.machine.bits import Array, codes_of, dtype_of

WIDTH = 16
"""Elements that the host works on at once; rows of fewer are shorter vectors."""

_SIGN, _INFINITE, _MAGNITUDE = -0x8000_0000, 0x7F80_0000, 0x7FFF_FFFF  # of float32


@cache
def compile_input(form: FloatFormat, how: Sum, width: int) -> Callable[..., None]:
    """The function that reads the numbers of an operand, in the type that a sum wants.

    Its arguments are: the address of the registers, how many words waves are apart in it, and how
    many a register and the next one are; the number of waves; the number of rows of lanes, and for
    each of them, as 64-bit integers, the word where it starts, the bit where its elements start,
    and the place of its first element; how many elements a row has; the addresses of the numbers
    and of their exponents, and how many elements waves are apart in them; and the address of a
    32-bit integer, which becomes the pattern of the largest magnitude as a float32.
    """
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 13), "input")
    builder = ir.IRBuilder(function.append_basic_block())
    (words, wave_words, register_words, waves, rows, starts, shifts, places, length, numbers,
     exponents, wave_elements, peak) = function.args  # fmt: skip
    words = pointer(builder, words, I32)
    starts, shifts, places = (pointer(builder, x, I64) for x in (starts, shifts, places))
    numbers = pointer(builder, numbers, TYPES[how.factor])
    exponents, peak = pointer(builder, exponents, I32), pointer(builder, peak, I32)
    largest = builder.alloca(ir.VectorType(I32, width))
    zero = splat(builder, I32(0), width)
    builder.store(zero.value, largest)

    with loop(builder, waves) as wave, loop(builder, rows) as row:
        start = builder.add(builder.mul(wave, wave_words), load_scalar(builder, starts, row))
        shift = splat(builder, builder.trunc(load_scalar(builder, shifts, row), I32), width)
        place = builder.add(builder.mul(wave, wave_elements), load_scalar(builder, places, row))
        with loop(builder, length, width) as x:
            at, to = builder.add(start, x), builder.add(place, x)
            code = load_vector(builder, words, at, width) >> shift
            if form == DOUBLE:
                high = load_vector(builder, words, builder.add(at, register_words), width)
                store_vector(builder, _double(code, high), numbers, to)
            elif how.splits:
                number, exponent, magnitude = split_number(form, how, code)
                store_vector(builder, number, numbers, to)
                store_vector(builder, exponent, exponents, to)
                before = Vector(builder, builder.load(largest))
                builder.store(before.maximum(magnitude).value, largest)
            else:
                store_vector(builder, whole_number(form, how, code), numbers, to)
    found = Vector(builder, builder.load(largest))
    builder.store(found.largest(), peak)
    builder.ret_void()
    return compile_function(module, "input", 13)


def split_number(form: FloatFormat, how: Sum, code: Vector) -> tuple[Vector, Vector, Vector]:
    """A code as a factor of a sum that splits: the factor, its exponent, and the pattern of the
    number's magnitude as a float32."""
    value = _value(form, code)
    significand, exponent = _split(form, code, value, how.zero_exponent)
    return value if how.narrow else significand, exponent, value.bits() & _MAGNITUDE


def whole_number(form: FloatFormat, how: Sum, code: Vector) -> Vector:
    """A code as a factor of a sum that does not split."""
    return _signed(code) if form == INTEGER else _value(form, code).to(TYPES[how.factor])


def _double(low: Vector, high: Vector) -> Vector:
    return (low.unsigned(I64) | high.unsigned(I64) << 32).floats()


def _signed(code: Vector) -> Vector:
    return (code << 24).shift_signed(24)


def _sign(form: FloatFormat, code: Vector) -> Vector:
    return code << (32 - form.bits) & _SIGN


def _magnitude(form: FloatFormat, code: Vector) -> Vector:
    """All bits but the sign, without those that are cut."""
    kept = (1 << (form.bits - 1)) - (1 << form.cut)
    found = code & kept
    if form.flushed:
        found = (found > (1 << form.mantissa_bits) - 1).choose(found, 0)
    return found


def _is_special(form: FloatFormat, code: Vector) -> Vector | None:
    whole = code & (1 << (form.bits - 1)) - (1 << form.cut)
    if form.special == "ieee":
        infinite = ((1 << form.exponent_bits) - 1) << form.mantissa_bits
        return whole > infinite - 1
    if form.special == "top":
        return whole == (1 << (form.bits - 1)) - 1
    if form.special == "minus_zero":
        return (code & (1 << form.bits) - 1) == 1 << (form.bits - 1)
    return None


def _value(form: FloatFormat, code: Vector) -> Vector:
    """The numbers as float32, which holds each of them exactly."""
    magnitude = _magnitude(form, code)
    sign = _sign(form, code)
    if form.flushed:  # +0, whatever the sign was
        sign = (magnitude == 0).choose(magnitude, sign)
    # As a float32 the pattern is the number times a power of two, denormal or not.
    pattern = magnitude << (23 - form.mantissa_bits)
    if form.bias != 127:
        scale = code.of(code.like((127 + 127 - form.bias) << 23)).floats()
        pattern = (pattern.floats() * scale).bits()
    special = _is_special(form, code)
    if special is not None:
        pattern = special.choose(_special_pattern(form, code), pattern)
    return (pattern | sign).floats()


def _special_pattern(form: FloatFormat, code: Vector) -> Vector:
    if form.special != "ieee":
        return code.of(code.like(_INFINITE | 1 << 22))
    whole = code & (1 << (form.bits - 1)) - (1 << form.cut)
    payload = whole & (1 << form.mantissa_bits) - 1
    return (payload != 0).if_true(1 << 22) | _INFINITE


def _split(form: FloatFormat, code: Vector, value: Vector, zero: int) -> tuple[Vector, Vector]:
    """Significands from 1 to below 2, smaller for denormal numbers, and exponents.

    Zeros, infinities and NaNs have the exponent `zero`.
    """
    magnitude, sign = _magnitude(form, code), _sign(form, code)
    mantissa = magnitude & (1 << form.mantissa_bits) - 1
    biased = magnitude >> form.mantissa_bits
    normal = mantissa << (23 - form.mantissa_bits) | 127 << 23
    small = (mantissa.to(F32) * 2.0**-form.mantissa_bits).bits()
    significand = (biased == 0).choose(small, normal) | sign
    exponent = biased.maximum(1) - form.bias
    exponent = (magnitude == 0).choose(zero, exponent)
    special = _is_special(form, code)
    if special is None:
        return significand.floats(), exponent
    return (
        special.choose(value, significand.floats()),
        special.choose(zero, exponent),
    )


@dataclass(frozen=True)
class Numbers:
    """A or B: `values` of shape (waves, blocks * K, rows), or their significands and `exponents`.

    `peak` is the largest magnitude, where exponents are given.
    """

    values: Array
    exponents: npt.NDArray[np.int32]
    peak: float

    @property
    def addresses(self) -> tuple[int, int]:
        """Where the host code finds the tables of values and exponents."""
        return self.values.ctypes.data, self.exponents.ctypes.data


def read_numbers(
    words: npt.NDArray[np.uint32],
    form: FloatFormat,
    how: Sum,
    lanes: npt.NDArray[np.int64],
    items: npt.NDArray[np.int64],
    rows: int,
    name: str = "a",
) -> Numbers:
    """The numbers in registers (registers, waves, lanes), as a sum wants them.

    `lanes` and `items` say where those of each block and k start; `rows` lie in lanes that follow.
    They are good until this thread reads an operand of the same name again.
    """
    waves = words.shape[1]
    bits = form.bits
    if 32 % bits and bits < 32:
        words, bits = _one_a_word(words, bits), 32
    words = words if words.strides[2] == 4 else np.ascontiguousarray(words)
    register_words, wave_words = (stride // 4 for stride in words.strides[:2])
    starts = lanes + items * bits // 32 * register_words
    shifts = items * bits % 32
    places = np.arange(len(lanes)) * rows
    shape = waves, len(lanes), rows
    values = _room(f"values of {name}", shape, dtype_of(how.factor))
    exponents = _room(f"exponents of {name}", shape if how.splits else (0, 0, 0), np.int32)
    peak = np.zeros(1, np.float32)
    read = compile_input(form, how, min(rows, WIDTH))
    read(
        words.ctypes.data, wave_words, register_words, waves,
        len(lanes), starts.ctypes.data, shifts.ctypes.data, places.ctypes.data, rows,
        values.ctypes.data, exponents.ctypes.data, len(lanes) * rows, peak.ctypes.data,
    )  # fmt: skip
    return Numbers(values, exponents, float(peak[0]))


_kept = threading.local()


def _room(name: str, shape: tuple[int, int, int], dtype: npt.DTypeLike) -> Array:
    """An array of this thread's, not filled: new memory for each instruction would take longer
    than the instruction."""
    size = prod(shape) * np.dtype(dtype).itemsize
    octets: Array | None = getattr(_kept, name, None)
    if octets is None or octets.size < size:
        octets = np.empty(size, np.uint8)
        setattr(_kept, name, octets)
    return octets[:size].view(dtype).reshape(shape)


def _one_a_word(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    """Codes that straddle words, each in a word of its own."""
    codes = codes_of(np.ascontiguousarray(np.moveaxis(words, 0, -1)), bits)
    return np.ascontiguousarray(np.moveaxis(codes, -1, 0).astype(np.uint32))
