"""Extents that are a number times a symbol, in a form of which TVM proves what a schedule needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import prod

from tvm import tirx
from tvm.ir import Range
from tvm.s_tir import SBlock
from tvm.tirx import Buffer, Expr, For, IntImm, PrimFunc, Var

from mfmadsl.passes.kernel.factor import FACTORS, factors_of
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.product.launch_symbols import arguments_of, unused
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products

_WHOLE = 256
"""Rows of the largest tile: what is a multiple of them takes tiles as they are."""


def with_plain_extents(function: PrimFunc, block: str | None = None) -> PrimFunc:
    """The function, in which no extent of the product is an even number times symbols.

    The number becomes one, which the attribute `mfmadsl.factors` says, and `build` puts back.
    `block` names the product where there are several sums.
    """
    product = sum_of_products(product_nest(function, block))
    numbers = {
        number
        for kind in "ijk"
        for number in _even([axis.dom.extent for axis in product.axes(kind)])
    }
    # Where a number stands in no argument, no parameter would define its symbol.
    numbers &= _numbers_in(arguments_of(function))
    return _with_symbols(function, numbers) if numbers else function


def _numbers_in(buffers: Iterable[Buffer]) -> set[int]:
    found: list[IntImm] = []
    for extent in (extent for buffer in buffers for extent in buffer.shape):
        walk(extent, (IntImm, found.append))
    return set(map(int, found))


def _factors(extent: Expr) -> list[Expr]:
    """The factors of a product."""
    if isinstance(extent, tirx.Mul):
        return [*_factors(extent.a), *_factors(extent.b)]
    return [extent]


def _even(extents: Sequence[Expr]) -> Iterator[int]:
    """The even numbers in the extents of one kind, if they multiply a symbol."""
    each = [factor for extent in extents for factor in _factors(extent)]
    numbers = [number for factor in each if (number := constant(factor)) is not None]
    whole = prod(numbers)
    if len(numbers) < len(each) and whole % 2 == 0 and whole % _WHOLE:
        yield from (number for number in numbers if number % 2 == 0)


def _with_symbols(function: PrimFunc, numbers: Collection[int]) -> PrimFunc:
    """The function with symbols for numbers in extents, wherever they stand in one."""
    symbols: dict[tuple[int, str], Var] = {}

    def symbol(number: IntImm) -> Expr:
        if int(number) not in numbers:
            return number
        key = int(number), str(number.ty.dtype)
        if key not in symbols:
            symbols[key] = unused(function, f"factor_{key[0]}", number)
        return symbols[key]

    def of_extent(extent: Expr) -> Expr:
        return mapped(extent, (IntImm, symbol))

    buffers = [*arguments_of(function), *_allocated(function)]
    own = {
        buffer.__chandle__(): tirx.decl_buffer(
            [of_extent(extent) for extent in buffer.shape], buffer.dtype, buffer.name,
            scope=buffer.scope(),
        )
        for buffer in buffers
    }  # fmt: skip

    def loop(node: For) -> For:
        return For(
            node.loop_var, node.min, of_extent(node.extent), node.kind, node.body,
            node.thread_binding, node.annotations,
        )  # fmt: skip

    body = mapped(
        function.body,
        (Var, lambda v: own.get(v.__chandle__(), v)),
        (For, loop),
        (Range, lambda r: Range.from_min_extent(r.min, of_extent(r.extent))),
    )
    parameters = [own.get(each.__chandle__(), each) for each in function.params]
    changed = PrimFunc(parameters, body, function.ret_type, function.attrs)
    known = {found.name: number for (number, _), found in symbols.items()}
    return changed.with_attr(FACTORS, {**factors_of(function), **known})


def _allocated(function: PrimFunc) -> list[Buffer]:
    found: list[SBlock] = []
    walk(function.body, (SBlock, found.append))
    return [buffer for block in found for buffer in block.alloc_buffers]
