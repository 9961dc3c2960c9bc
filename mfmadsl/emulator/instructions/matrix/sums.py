"""D = A x B + C of whole matrices, as code for the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.group import MatrixProduct, add_group, start, state_of
from mfmadsl.emulator.instructions.matrix.host_code import (
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
from mfmadsl.emulator.instructions.matrix.numbers import WIDTH, Numbers
from mfmadsl.emulator.machine.bits import Array

SAFE = 2.0**126
"""Below it no sum overflows, and none of its operands is infinite or NaN."""


@cache
def compile_sum(how: Sum, width: int, special: bool) -> Callable[..., None]:
    """The function that adds up whole matrices, `width` columns of D at a time.

    Its arguments are: the addresses of A and of its exponents, as (waves, blocks, K, M), of B and
    of its exponents, as (waves, blocks, K, N); the address of C, how many elements its waves are
    apart, and the address of the place of each of its rows, (blocks, M) 64-bit integers in
    elements; those three of D; the numbers of waves and blocks, M, N and K, a multiple of the
    group. Without `special` every number is finite, and too small for any sum to overflow.
    """
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 15), "sum")
    builder = ir.IRBuilder(function.append_basic_block())
    a, a_exponents, b, b_exponents, c, c_wave, c_rows, d, d_wave, d_rows, *extents = function.args
    waves, blocks, m, n, k = extents
    left, right = (pointer(builder, x, TYPES[how.factor]) for x in (a, b))
    left_exponents, right_exponents = (pointer(builder, x, I32) for x in (a_exponents, b_exponents))
    c, d = (pointer(builder, x, TYPES[how.element]) for x in (c, d))
    c_rows, d_rows = (pointer(builder, x, I64) for x in (c_rows, d_rows))
    place = builder.alloca(ir.VectorType(state_of(how), width))

    with loop(builder, waves) as wave, loop(builder, blocks) as block, loop(builder, m) as i:
        tile = builder.mul(builder.add(builder.mul(wave, blocks), block), k)
        row = builder.add(builder.mul(block, m), i)
        source, target = (
            builder.add(builder.mul(wave, apart), load_scalar(builder, rows, row))
            for apart, rows in ((c_wave, c_rows), (d_wave, d_rows))
        )
        with loop(builder, n, width) as j:
            total = load_vector(builder, c, builder.add(source, j), width)
            builder.store(start(how, total).value, place)
            with loop(builder, k, how.group) as first:
                products = []
                for x in range(how.group):
                    step = builder.add(tile, builder.add(first, I64(x)))
                    of_a = builder.add(builder.mul(step, m), i)
                    of_b = builder.add(builder.mul(step, n), j)
                    factors = (
                        splat(builder, load_scalar(builder, left, of_a), width),
                        load_vector(builder, right, of_b, width),
                    )
                    exponent = None
                    if how.splits:
                        of_left = load_scalar(builder, left_exponents, of_a)
                        of_right = load_vector(builder, right_exponents, of_b, width)
                        exponent = splat(builder, of_left, width) + of_right
                    products.append(MatrixProduct(*factors, exponent))
                total = Vector(builder, builder.load(place))
                builder.store(add_group(how, total, products, special).value, place)
            total = Vector(builder, builder.load(place)).to(TYPES[how.element])
            store_vector(builder, total, d, builder.add(target, j))
    builder.ret_void()
    return compile_function(module, "sum", 15)


@dataclass(frozen=True)
class Rows:
    """Rows of C or D in an array: `starts` has where each of them starts in the first wave, in
    elements, in the order block, row; waves are `wave` elements apart."""

    elements: Array
    starts: npt.NDArray[np.int64]
    wave: int


def add_products(
    how: Sum, a: Numbers, b: Numbers, c: Rows, d: Rows, extents: tuple[int, int, int, int, int]
) -> None:
    """D = A x B + C, of `extents` waves, blocks, M, N and K; D may lie where C does."""
    n, k = extents[3:]
    special = False
    if how.splits:
        largest = max(c.elements.max(), -c.elements.min()) + k * a.peak * b.peak
        special = not largest < SAFE  # or NaN
    add = compile_sum(how, min(n, WIDTH), special)
    add(
        *a.addresses, *b.addresses,
        c.elements.ctypes.data, c.wave, c.starts.ctypes.data,
        d.elements.ctypes.data, d.wave, d.starts.ctypes.data,
        *extents,
    )  # fmt: skip
