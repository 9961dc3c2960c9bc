"""Products of int8 and int8 on CPUs whose dot product takes bytes of one side without a sign.

With A' = A + 128, which has none, A x B = A' x B - 128 * the sums of B's columns. A' x B may be
2^32 off what it is, since the instruction's sums of int32 wrap around. The difference is one of
int64, cut to 32 bits: it is exact where A x B fits into int32, and wraps around where it does not.
TVM tells LLVM that int32 and uint32 never wrap, so that their difference would be anything.
"""

from __future__ import annotations

from math import prod

from tvm import s_tir, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.tirx import Buffer, Expr, IterVar, PrimFunc, Stmt

from mfmadsl.schedule.product.added_nest import (
    again,
    block_of,
    buffer_of,
    element_wise,
    looped,
    replaced,
    unique,
)
from mfmadsl.schedule.product.memory import number, plain
from mfmadsl.schedule.product.nest import SCHEDULED, block_names, substitute
from mfmadsl.schedule.product.sum_of_products import (
    SumOfProducts,
    product_nest,
    sum_of_products,
    uses,
)

_OFFSET = 128
_VECTOR = 64

_MOST = (2**31 - 1) // _OFFSET
"""The most bytes whose sum surely fits into 32 bits."""


def without_sign(function: PrimFunc) -> tuple[PrimFunc, str]:
    """A prepared function with its first factor, int8 before, as uint8; the name of the block that
    adds up B's columns."""
    product = sum_of_products(product_nest(function))
    nest, taken = product.nest, block_names(function)
    first, second = product.first, product.second
    axes = nest.block.iter_vars

    bytes_of_a = [axis for axis in axes if uses(first, axis.var)]
    unsigned, places = buffer_of(f"{first.source.name}_unsigned", bytes_of_a, "uint8")
    flipped = tirx.bitwise_xor(tirx.reinterpret("uint8", first), tirx.const(_OFFSET, "uint8"))
    name = unique(f"{first.source.name}_unsigned", taken)
    before = element_wise(name, bytes_of_a, unsigned, places, flipped)

    columns, column, adding, sums_name = _column_sums(product, taken)

    spatial = [axis for axis in axes if uses(product.store, axis.var)]
    total, place = buffer_of(f"{product.store.buffer.name}_offset", spatial, "int32")
    so_far = tirx.BufferLoad(total, place)
    factors = [tirx.Cast("int32", each) for each in (tirx.BufferLoad(unsigned, places), second)]
    body = tirx.BufferStore(total, so_far + factors[0] * factors[1], place)
    init = tirx.BufferStore(total, tirx.const(0, "int32"), place)
    changed = block_of(nest.name, list(axes), body, init, nest.block.annotations)
    middle = again(nest.loops, s_tir.SBlockRealize(nest.realize.iter_values, True, changed))

    sums = tirx.Cast("int64", tirx.BufferLoad(columns, column))
    exact = tirx.Cast("int64", so_far) - tirx.const(_OFFSET, "int64") * sums
    result = tirx.Cast("int32", exact)
    name = unique(f"{nest.name}_signed", taken)
    after = element_wise(name, spatial, product.store.buffer, list(product.store.indices), result)
    whole = replaced(function, nest, [before, adding, middle, after], [unsigned, columns, total])
    return whole, sums_name


def _column_sums(product: SumOfProducts, taken: set[str]) -> tuple[Buffer, list[Expr], Stmt, str]:
    """(a buffer, where a column's sum is in it, the nest that adds B up, the name of its block)."""
    second = product.second
    axes = [axis for axis in product.nest.block.iter_vars if uses(second, axis.var)]
    kept = [axis for axis in axes if axis.iter_type == IterVar.DataPar]
    summed = [axis for axis in axes if axis.iter_type != IterVar.DataPar]
    dtype = "int32" if _rows(summed) <= _MOST else "int64"
    sums, column = buffer_of(f"{second.source.name}_sums", kept, dtype)
    name = unique(f"{second.source.name}_sums", taken)
    own = [
        IterVar(axis.dom, tirx.Var(f"v_{axis.var.name}", axis.var.ty), axis.iter_type)
        for axis in (*kept, *summed)
    ]
    renamed = {old.var: new.var for old, new in zip((*kept, *summed), own, strict=True)}
    value = tirx.BufferLoad(sums, column) + tirx.Cast(dtype, second)
    store = substitute(tirx.BufferStore(sums, value, column), renamed)
    init = substitute(tirx.BufferStore(sums, tirx.const(0, dtype), column), renamed)
    loops = [tirx.Var(axis.var.name, axis.var.ty) for axis in own]
    realize = s_tir.SBlockRealize(loops, True, block_of(name, own, store, init, {}))
    return sums, column, looped(loops, own, realize), name


def _rows(axes: list[IterVar]) -> int:
    """How many bytes a column's sum is of; where an extent is a symbol, more than any number."""
    return prod(number(plain(axis.dom.extent)) or _MOST + 1 for axis in axes)


def schedule_column_sums(sch: Schedule, block: SBlockRV) -> None:
    """Rows of B one after the other, vectors of columns at once."""
    kinds = [axis.iter_type for axis in sch.get(block).iter_vars]
    loops = sch.get_loops(block)
    columns = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == IterVar.DataPar]
    rows = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != IterVar.DataPar]
    vectors, lanes = sch.split(columns[-1], [None, _VECTOR])
    sch.reorder(*columns[:-1], vectors, *rows, lanes)
    sch.vectorize(lanes)
    sch.annotate(columns[0] if len(columns) > 1 else vectors, SCHEDULED, 1)
    init = sch.decompose_reduction(block, rows[0])
    sch.vectorize(sch.get_loops(init)[-1])
