"""A sum of products of packed, scaled elements: the workload of the scaled instructions' modules.

A and B are arrays of bytes, in which small floats lie packed along k, and each group of 32 of them
along k has a power of two: `SCALE_A[i, k // 32]`, `SCALE_B[j, k // 32]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Buffer, Expr, IterVar, PrimFunc, Stmt

from mfmadsl.argument import LARGEST_EXTENT, check_choice, check_extent
from mfmadsl.error import ArgumentError
from mfmadsl.language import library
from mfmadsl.model import ELEMENT_TYPES, Intrinsic
from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.product.added_nest import (
    again,
    block_of,
    element_wise,
    replaced,
    unique,
)
from mfmadsl.schedule.product.nest import (
    Nest,
    block_names,
    check_plain,
    is_sum,
    nests,
    same,
)

_WORD = 4  # scales of a byte each
OPERANDS = ("A", "B", "SCALE_A", "SCALE_B")
"""What a scaled product multiplies, in the order in which the workload takes them."""


@dataclass(frozen=True)
class ScaledProduct:
    """C[i, j] += A[i, k] * B[j, k] of packed elements of two types, scaled in groups along k.

    `operands` are the buffers of `OPERANDS`, `result` is C, and `extents` are M, N and K.
    """

    nest: Nest
    operands: tuple[Buffer, Buffer, Buffer, Buffer]
    result: Buffer
    extents: tuple[int, int, int]
    types: tuple[str, str]


def scaled_matmul(
    m: int, n: int, k: int, a_type: str, b_type: str | None = None, scale_order: str = "rows"
) -> PrimFunc:
    """C[m, n] = A[m, k] x B[n, k]^T of small floats, scaled in groups of 32 along k.

    The parameters are A, B, SCALE_A and SCALE_B, all uint8, and C, float32. A and B hold elements
    packed along k from the lowest bit up: [m, k * bits / 8] and [n, k * bits / 8]. The scales,
    [m, k / 32] and [n, k / 32], are in E8M0: each multiplies its group by 2 ** (scale - 127). The
    types are those of OCP's Microscaling Formats v1.0, by name or as instructions call them:
    float8_e4m3fn (fp8), float8_e5m2 (bf8), float6_e2m3fn (fp6), float6_e3m2fn (bf6), float4_e2m1fn
    (fp4); B has that of A if `b_type` does not say another. Elements and scales are numbers: what
    NaN gives is the instruction's.

    In the `scale_order` "rows" scales lie as said; in "words" the four of 128 k lie together for
    all rows, [k / 128, m, 4] and [k / 128, n, 4]: whole lines of memory are of one step.

    Raises ArgumentError for an extent that is no positive number, a k that is no multiple of 32 (of
    128 in the order "words"), and other types or orders.
    """
    m, n, k = (check_extent(name, value) for name, value in (("m", m), ("n", n), ("k", k)))
    types = a_type, a_type if b_type is None else b_type
    short = {ELEMENT_TYPES[each].short: each for each in scaled_types()}
    for name, dtype in zip(("a_type", "b_type"), types, strict=True):
        check_choice(name, dtype, (*short.values(), *short))
    intrinsic = scaled_intrinsics(*(short.get(each, each) for each in types))[0]
    check_choice("scale_order", scale_order, ("rows", "words"))
    if k % (group := group_of(intrinsic)):
        raise ArgumentError(
            f"k: {k} is no multiple of {group}, the elements that share a scale: pad A and B with"
            " zeros"
        )
    workload = _workload(intrinsic, (m, n, k))
    if scale_order == "rows":
        return workload
    if k % (group * _WORD):
        raise ArgumentError(
            f"k: {k} is no multiple of {group * _WORD}, the elements of {_WORD} scales, which lie"
            " together in the order `words`"
        )
    return _scales_by_words(workload)


def _scales_by_words(workload: PrimFunc) -> PrimFunc:
    """The workload with blocks before it that take scales from where words of four lie together."""
    (nest,) = nests(workload)
    a, b, *scales, c = workload.params
    before, given = [], []
    for rows in scales:
        count, groups = rows.shape
        words = tirx.decl_buffer((groups // _WORD, count, _WORD), rows.dtype, rows.name)
        axes = list(_axes(rows))
        i, g = (axis.var for axis in axes)
        value = tirx.BufferLoad(words, [g // _WORD, i, g % _WORD])
        before.append(element_wise(f"{rows.name}_rows", axes, rows, [i, g], value))
        given.append(words)
    function = replaced(workload, nest, [*before, nest.statement], scales)
    return PrimFunc([a, b, *given, c], function.body, function.ret_type, attrs=function.attrs)


def group_of(intrinsic: Intrinsic) -> int:
    """The elements along k that share a scale."""
    return intrinsic.k // intrinsic.scales[0].layout.columns


def scaled_intrinsics(a_type: str, b_type: str) -> list[Intrinsic]:
    """The scaled instructions of the library for elements of these types."""
    return [
        each
        for each in library().values()
        if isinstance(each, Intrinsic)
        and each.scales
        and (each.a.type.name, each.b.type.name) == (a_type, b_type)
    ]


def scaled_product(function: PrimFunc) -> ScaledProduct | None:
    """The scaled product of a function, if one of its blocks is the workload of a module.

    Raises ScheduleError, with the name of the block, if it is, but not once for each place.
    """
    for nest in nests(function):
        if is_sum(nest) and (found := _scaled(nest)) is not None:
            return found
    return None


def _scaled(nest: Nest) -> ScaledProduct | None:
    extents = [constant(axis.dom.extent) for axis in nest.block.iter_vars]
    if len(extents) != 3 or None in extents or not isinstance(nest.block.body, tirx.BufferStore):
        return None
    m, n, k = (extent for extent in extents if extent is not None)
    own = _plain_block(nest)
    operands, results = ([region.source for region in each] for each in (own.reads, own.writes))
    if len(operands) != len(OPERANDS) or not all(len(each.shape) == 2 for each in operands):
        return None
    a, scale_a, b, scale_b = operands
    for a_type, b_type in product(scaled_types(), repeat=2):
        intrinsic = scaled_intrinsics(a_type, b_type)[0]
        bits = intrinsic.a.type.bits, intrinsic.b.type.bits
        if [constant(each.shape[-1]) for each in (a, b)] != [k * each // 8 for each in bits]:
            continue
        workload = _workload(intrinsic, (m, n, k))
        (other,) = nests(workload)
        alike = tvm_ffi.structural_equal(own, _plain_block(other), map_free_vars=True)
        buffers = a, b, scale_a, scale_b
        shapes = zip((*buffers, *results), workload.params, strict=True)
        if alike and all(same(x.shape, y.shape) for x, y in shapes):
            check_plain(nest)
            return ScaledProduct(nest, buffers, results[0], (m, n, k), (a_type, b_type))
    return None


def _plain_block(nest: Nest) -> SBlock:
    """The block under one name for all, which says to access what it does."""
    return block_of("C", list(nest.block.iter_vars), nest.store, nest.block.init, {})


def scaled_types(arch: str | None = None) -> list[str]:
    """The types of elements that scaled instructions take, of all chips or of one."""
    found = [e for e in library().values() if isinstance(e, Intrinsic) and e.scales]
    return list(dict.fromkeys(e.a.type.name for e in found if arch is None or arch in e.chips))


def _workload(intrinsic: Intrinsic, extents: tuple[int, int, int]) -> PrimFunc:
    function: PrimFunc = load_intrinsic(intrinsic).matmul(*extents, True)
    return function


def padded(
    function: PrimFunc, found: ScaledProduct, intrinsic: Intrinsic, tiles: tuple[int, int, int]
) -> PrimFunc:
    """The function with the product in whole tiles of M, N and K: what is missing is zero.

    Blocks before it take the operands, and one behind it the result, to where the product has them:
    they can be inlined, and are no copies in memory.

    Raises ScheduleError where whole tiles are more than a loop counts.
    """
    m, n, k = (-(-e // tile) * tile for e, tile in zip(found.extents, tiles, strict=True))
    if max(m, n, k) > LARGEST_EXTENT:
        raise ScheduleError(
            f"workload: whole tiles make {m} x {n} x {k} of it, and loops count up to"
            f" {LARGEST_EXTENT}: make it smaller, or give smaller tiles"
        )
    taken = block_names(function)
    whole = _workload(intrinsic, (m, n, k))
    *operands, result = (whole.params[place] for place in range(5))
    before: list[Stmt] = []
    for name, buffer, to in zip(OPERANDS, found.operands, operands, strict=True):
        axes = list(_axes(to))
        places = [axis.var for axis in axes]
        value = _inside(buffer, places, to)
        before.append(element_wise(unique(f"{name}_whole", taken), axes, to, places, value))
    (nest,) = nests(whole)
    name = unique(f"{found.nest.name}_result", taken)
    axes = list(_axes(found.result))
    places = [axis.var for axis in axes]
    after = element_wise(name, axes, found.result, places, tirx.BufferLoad(result, places))
    middle = _named(nest, found.nest.name)
    return replaced(function, found.nest, [*before, middle, after], [*operands, result])


def _axes(buffer: Buffer) -> Iterator[IterVar]:
    for name, extent in zip("ij", buffer.shape, strict=True):
        domain = tvm.ir.Range.from_min_extent(tirx.IntImm("int32", 0), extent)
        yield IterVar(domain, tirx.Var(name, "int32"), IterVar.DataPar)


def _inside(buffer: Buffer, places: Sequence[Expr], to: Buffer) -> Expr:
    """The element of a buffer at a place of a larger one, or zero."""
    value = tirx.BufferLoad(buffer, list(places))
    bounds = [
        place < extent
        for place, extent, larger in zip(places, buffer.shape, to.shape, strict=True)
        if constant(extent) != constant(larger)
    ]
    if not bounds:
        return value
    return tirx.if_then_else(tirx.all(*bounds), value, tirx.const(0, str(buffer.dtype)))


def _named(nest: Nest, name: str) -> Stmt:
    """The nest with its block under another name."""
    block = block_of(name, list(nest.block.iter_vars), nest.store, nest.block.init, {})
    return again(nest.loops, SBlockRealize(list(nest.realize.iter_values), True, block))
