"""Vectors whose words have elements of several rows: the rows are loaded, and words made of them.

A dot product of bytes wants four k of a column beside each other, which lie in four rows of B:

    for lane in T.vectorized(64):
        own[lane] = b[k + lane % 4, j + lane // 4]

LLVM would load 64 bytes one by one. Instead,

    for row in range(4):
        for lane in T.vectorized(16):
            rows[row][lane] = b[k + row, j + lane]
    own[0:64] = rows[0] | rows[1] << 8 | rows[2] << 16 | rows[3] << 24
"""

from __future__ import annotations

import tvm
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import AllocBuffer, Buffer, BufferStore, Expr, For, ForKind, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.expression import constant, loads_of, step_of, substitute
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped

_WORD = 32
"""Bits that a vector instruction shifts at once."""


def interleave_rows(function: PrimFunc) -> PrimFunc:
    """The function, whose buffers are flat, with such loops as words of rows.

    Others are left as they are.
    """
    return with_body(function, mapped(function.body, (For, _interleaved)))


def _interleaved(loop: For) -> Stmt:
    store, lanes = loop.body, constant(loop.extent)
    if loop.kind != ForKind.VECTORIZED or not isinstance(store, BufferStore) or lanes is None:
        return loop
    bits = int(tvm.DataType(str(store.buffer.dtype)).bits)
    lane, count = loop.loop_var, _WORD // bits
    whole = bits in (8, 16) and lanes % count == 0 and step_of(store.indices[0], lane) == 1
    apart = [load for load in loads_of(store.value) if step_of(load.indices[0], lane) != 1]
    if not whole or len(store.indices) != 1 or not apart:
        return loop
    rows = [_row(loop, store, number, count) for number in range(count)]
    if any(
        step_of(load.indices[0], row.loop_var) != 1 for _, row in rows for load in loads_of(row)
    ):
        return loop
    first = substitute(store.indices[0], {lane: tirx.IntImm("int32", 0)})
    index = tirx.Ramp(Analyzer().simplify(first), tirx.IntImm("int32", 1), lanes)
    words = _words([own for own, _ in rows], bits)
    loaded = [(AllocBuffer(own), row) for own, row in rows]
    packed = BufferStore(
        store.buffer, tirx.reinterpret(f"{store.buffer.dtype}x{lanes}", words), [index]
    )
    return tirx.SeqStmt([*(each for pair in loaded for each in pair), packed])


def _row(loop: For, store: BufferStore, number: int, count: int) -> tuple[Buffer, For]:
    """The elements with that number in each word, and the loop that loads them."""
    words = int(loop.extent) // count
    own = tirx.decl_buffer([words], store.buffer.dtype, f"row_{number}", scope="local")
    lane = Var("lane", "int32")
    value = substitute(store.value, {loop.loop_var: lane * count + number})
    body = BufferStore(own, Analyzer().simplify(value), [lane])
    return own, For(lane, 0, words, ForKind.VECTORIZED, body)


def _words(rows: list[Buffer], bits: int) -> Expr:
    """Vectors of words, of which the first row has the lowest bits."""
    words: Expr | None = None
    for number, row in enumerate(rows):
        (extent,) = map(int, row.shape)
        ramp = tirx.Ramp(tirx.IntImm("int32", 0), tirx.IntImm("int32", 1), extent)
        element = tirx.reinterpret(f"uint{bits}x{extent}", tirx.BufferLoad(row, [ramp]))
        shift = tirx.const(number * bits, f"int32x{extent}")
        word = tirx.shift_left(tirx.Cast(f"int32x{extent}", element), shift)
        words = word if words is None else tirx.bitwise_or(words, word)
    assert words is not None
    return words
