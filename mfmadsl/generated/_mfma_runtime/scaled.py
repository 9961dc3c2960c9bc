"""The description of C += A x B of small floats, of which each group has a power of two.

Written by `mfmadsl compile` beside the modules that it generates.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return"
# ruff: noqa: N806, N812 (buffers are called like matrices, and TVMScript `T`)

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm import te, tirx
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from .block import of_column, of_row, whole
from .operand import Index, Operand

Format = tuple[int, int, int]  # bits of exponent and of mantissa, and the exponent's bias


def scaled(
    operands: Sequence[Operand], c: Operand, formats: tuple[Format, Format], k: int
) -> PrimFunc:
    """The description of C += A x B in registers, of bytes and scales: A, B and the scales of both.

    `k` is the tile's depth.
    """
    a, b, of_a, of_b = operands
    group = k // of_a.shape[1]

    @T.prim_func(s_tir=True)
    def desc(
        a_held: T.handle, b_held: T.handle, a_scales: T.handle, b_scales: T.handle, c_held: T.handle
    ) -> None:
        A = T.match_buffer(a_held, a.registers, "uint8", offset_factor=1, scope="warp")
        B = T.match_buffer(b_held, b.registers, "uint8", offset_factor=1, scope="warp")
        SCALE_A = T.match_buffer(a_scales, of_a.registers, "uint8", offset_factor=1, scope="warp")
        SCALE_B = T.match_buffer(b_scales, of_b.registers, "uint8", offset_factor=1, scope="warp")
        C = T.match_buffer(c_held, c.registers, c.dtype, offset_factor=1, scope="warp")
        with T.sblock("root"):
            T.reads(whole(C), whole(A), whole(SCALE_A), whole(B), whole(SCALE_B))
            T.writes(whole(C))
            for i, j, r in T.grid(*c.shape, k):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, r])
                    at = T.meta_var(c.slot(vi, vj))
                    left = T.meta_var(_number(partial(of_row, A, a.slot, vi), vk, formats[0]))
                    right = T.meta_var(_number(partial(of_column, B, b.slot, vj), vk, formats[1]))
                    scale_a = T.meta_var(_power(SCALE_A[of_a.slot(vi, vk // group)]))
                    scale_b = T.meta_var(_power(SCALE_B[of_b.slot(vk // group, vj)]))
                    C[at] = C[at] + left * scale_a * (right * scale_b)

    return desc


def scaled_matmul(
    shape: tuple[int, int, int], formats: tuple[Format, Format], group: int, b_transposed: bool
) -> PrimFunc:
    """The workload of bytes A and B, of their scales, of which each is for `group` of k, and C."""
    m, n, k = shape
    octets = [k * (1 + wide + narrow) // 8 for wide, narrow, _ in formats]

    def of_b(count: int, name: str) -> Any:
        return te.placeholder((n, count) if b_transposed else (count, n), "uint8", name=name)

    a, b = te.placeholder((m, octets[0]), "uint8", name="A"), of_b(octets[1], "B")
    scale_a = te.placeholder((m, k // group), "uint8", name="SCALE_A")
    scale_b = of_b(k // group, "SCALE_B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Index, j: Index) -> Any:
        def of_column(buffer: Any, x: Index) -> Any:
            return buffer[j, x] if b_transposed else buffer[x, j]

        left = _number(lambda x: a[i, x], r, formats[0]) * _power(scale_a[i, r // group])
        right = _number(lambda x: of_column(b, x), r, formats[1])
        return te.sum(left * (right * _power(of_column(scale_b, r // group))), axis=[r])

    c = te.compute((m, n), element, name="C")
    return te.create_prim_func([a, b, scale_a, scale_b, c])


def _number(octet: Callable[[Index], Any], k: Index, form: Format) -> Any:
    """The finite float32 that element k is; `octet` gives the byte with that number."""
    wide, narrow, bias = form
    code = _code(octet, k, 1 + wide + narrow)
    exponent = code >> narrow & (1 << wide) - 1
    mantissa = code & (1 << narrow) - 1
    least = tirx.FloatImm("float32", 2.0 ** (1 - bias - narrow))
    bits = exponent + (127 - bias) << 23 | mantissa << 23 - narrow
    small, large = tirx.Cast("float32", mantissa) * least, tirx.reinterpret("float32", bits)
    magnitude = tirx.Select(exponent == 0, small, large)
    return tirx.Select(code >> wide + narrow == 0, magnitude, -magnitude)


def _code(octet: Callable[[Index], Any], k: Index, bits: int) -> Any:
    """The bits of element k; `octet` gives the byte with that number."""
    if bits == 8:
        return tirx.Cast("int32", octet(k))
    if bits == 4:
        return tirx.Cast("int32", octet(k // 2)) >> k % 2 * 4 & 15
    first, second, third = (tirx.Cast("int32", octet(k // 4 * 3 + x)) for x in range(3))
    return (third << 16 | second << 8 | first) >> k % 4 * 6 & 63


def _power(exponent: Any) -> Any:
    """2 ** (exponent - 127)."""
    return tirx.reinterpret("float32", tirx.Cast("int32", exponent) << 23)
