"""Extents that are a number times a symbol, in a form of which TVM proves what a schedule needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Range
from tvm.s_tir import SBlock
from tvm.tirx import Buffer, Expr, For, IntImm, PrimFunc, Var

from mfmadsl.passes.kernel.factor import FACTORS
from mfmadsl.passes.tir.expression import constant, variables_of
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products

_WHOLE = 256
"""Rows of the largest tile: what is a multiple of them takes tiles as they are."""


def with_plain_extents(function: PrimFunc, block: str | None = None) -> PrimFunc:
    """The function, in which no extent of the product is an even number times a symbol.

    Where 2 * n is an extent and n is none, 2 * n becomes one symbol. Else the number becomes one,
    which the attribute `mfmadsl.factors` says, and `build` puts back. `block` names the
    product where there are several sums.
    """
    whole = _multiples_as_symbols(function)
    product = sum_of_products(product_nest(whole, block))
    factors = {
        number
        for kind in "ijk"
        for number in _factors([axis.dom.extent for axis in product.axes(kind)])
    }
    return _with_symbols(whole, factors) if factors else whole


def _multiples_as_symbols(function: PrimFunc) -> PrimFunc:
    """The function with symbols for the multiples of each symbol that is no extent by itself.

    A launch reads symbols off the extents, so that each has to be one, but those that are given.
    """
    extents = [extent for buffer in _arguments(function) for extent in buffer.shape]
    numbers: dict[Var, set[int]] = {}
    for symbol, number in filter(None, map(_parted, extents)):
        if not any(each.same_as(symbol) for each in (*extents, *function.params)):
            numbers.setdefault(symbol, set()).add(number)
    for symbol, found in numbers.items():
        function = _with_multiples(function, symbol, sorted(found))
    return function


def _with_multiples(function: PrimFunc, symbol: Var, numbers: Sequence[int]) -> PrimFunc:
    """The function with symbols for these multiples of `symbol`, and with that by the least one."""
    least = numbers[0]
    whole = Var(f"{symbol.name}_times_{least}", symbol.ty)
    wholes: dict[int, Expr] = {
        number: whole if number == least
        else whole * (number // least) if number % least == 0
        else Var(f"{symbol.name}_times_{number}", symbol.ty)
        for number in numbers
    }  # fmt: skip

    def multiple(node: tirx.Mul) -> Expr:
        found = _parted(node)
        return wholes.get(found[1], node) if found and found[0].same_as(symbol) else node

    def alone(variable: Var) -> Expr:
        return whole // least if variable.same_as(symbol) else variable

    changed = tvm_ffi.structural_map(function, (tirx.Mul, multiple))
    if not any(parameter.same_as(symbol) for parameter in function.params):
        return tvm_ffi.structural_map(changed, (Var, alone))
    return function if _mentions(changed, symbol) else changed


def _mentions(function: PrimFunc, symbol: Var) -> bool:
    extents = [extent for buffer in _arguments(function) for extent in buffer.shape]
    return any(v.same_as(symbol) for each in (function.body, *extents) for v in variables_of(each))


def _arguments(function: PrimFunc) -> list[Buffer]:
    return [each for each in function.params if getattr(each, "shape", None) is not None]


def _parted(extent: Expr) -> tuple[Var, int] | None:
    """(n, 2) of 2 * n."""
    if not isinstance(extent, tirx.Mul):
        return None
    for symbol, factor in ((extent.a, extent.b), (extent.b, extent.a)):
        number = constant(factor)
        if isinstance(symbol, Var) and number is not None and number > 1:
            return symbol, number
    return None


def _factors(extents: Collection[Expr]) -> Iterator[int]:
    """The even numbers in the extents of one kind, if they multiply a symbol."""
    numbers, whole, is_symbolic = [], 1, False
    for extent in extents:
        parted = _parted(extent)
        number = parted[1] if parted is not None else constant(extent)
        is_symbolic |= constant(extent) is None
        if number is not None:
            numbers.append(number)
            whole *= number
    if is_symbolic and whole % 2 == 0 and whole % _WHOLE:
        yield from (number for number in numbers if number % 2 == 0)


def _with_symbols(function: PrimFunc, factors: Collection[int]) -> PrimFunc:
    """The function with symbols for numbers in extents, wherever they stand in one."""
    symbols: dict[tuple[int, str], Var] = {}

    def symbol(number: IntImm) -> Expr:
        if int(number) not in factors:
            return number
        key = int(number), str(number.ty.dtype)
        return symbols.setdefault(key, Var(f"factor_{key[0]}", number.ty))

    def of_extent(extent: Expr) -> Expr:
        return tvm_ffi.structural_map(extent, (IntImm, symbol))

    buffers = [*_arguments(function), *_allocated(function)]
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

    body = tvm_ffi.structural_map(
        function.body,
        (
            (Var, lambda v: own.get(v.__chandle__(), v)),
            (For, loop),
            (Range, lambda r: Range.from_min_extent(r.min, of_extent(r.extent))),
        ),
    )
    parameters = [own.get(each.__chandle__(), each) for each in function.params]
    changed = PrimFunc(parameters, body, function.ret_type, function.attrs)
    numbers = {found.name: number for (number, _), found in symbols.items()}
    return changed.with_attr(FACTORS, numbers)


def _allocated(function: PrimFunc) -> list[Buffer]:
    found: list[SBlock] = []
    tvm_ffi.structural_walk(function.body, (SBlock, found.append))
    return [buffer for block in found for buffer in block.alloc_buffers]
