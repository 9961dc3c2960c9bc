"""Symbols in place of extents that are expressions: a launch reads symbols off the extents."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import count
from typing import get_args

import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlock
from tvm.sym import Analyzer, detect_linear_equation
from tvm.tirx import Buffer, Expr, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.kernel.requirement import with_requirements
from mfmadsl.passes.tir.expression import OfTwo, constant, substitute, variables_of
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.nest import line
from mfmadsl.schedule.product.sum_of_products import product_nest

_TYPED = re.compile(r"T\.int\d+\((-?\d+)\)")


def with_launch_symbols(function: PrimFunc, block: str | None = None) -> PrimFunc:
    """The function, in which each symbol is an extent of an argument, or a parameter.

    Where 2 * n is an extent and n is none, 2 * n becomes a symbol, and n its half. So does any
    other expression with such an n, and one that is an extent of the product: TVM proves of few
    that tiles cover them. What a launch has to hold, so that it is the same function, the root
    block says. `block` names the product where there are several sums.

    Raises ScheduleError where a symbol cannot be found from the extents.
    """
    function = _multiples_as_symbols(function)
    while (extent := _expression(function, block)) is not None:
        function = _with_symbol(function, extent)
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(function.body, (SBlock, blocks.append))
    known = [*_known(function), *(axis.var for block in blocks for axis in block.iter_vars)]
    for symbol in undefined_vars(function.body, function.params):
        if not _among(symbol, known):
            raise ScheduleError(
                f"workload: `{symbol.name}` cannot be found from the extents of the arguments: give"
                f" the function one with an extent of `{symbol.name}`"
            )
    return function


def arguments_of(function: PrimFunc) -> list[Buffer]:
    """The buffers that a function takes."""
    return [each for each in function.params if getattr(each, "shape", None) is not None]


def multiple(extent: Expr) -> tuple[Var, int] | None:
    """(n, 2) of 2 * n."""
    if not isinstance(extent, tirx.Mul):
        return None
    for symbol, factor in ((extent.a, extent.b), (extent.b, extent.a)):
        number = constant(factor)
        if isinstance(symbol, Var) and number is not None and number > 1:
            return symbol, number
    return None


def factors(extent: Expr) -> list[Expr]:
    """The factors of a product."""
    if isinstance(extent, tirx.Mul):
        return [*factors(extent.a), *factors(extent.b)]
    return [extent]


def unused(function: PrimFunc, name: str, like: Expr) -> Var:
    """A symbol of that name and of the type of `like`, with a number if there is one already."""
    there = [function.body, *_extents(function), *function.params]
    names = {variable.name for each in there for variable in variables_of(each)}
    tried = (name if i == 0 else f"{name}_{i}" for i in count())
    return Var(next(each for each in tried if each not in names), like.ty)


def _multiples_as_symbols(function: PrimFunc) -> PrimFunc:
    """The function with symbols for the multiples of each symbol that is no extent by itself."""
    numbers: dict[Var, set[int]] = {}
    for symbol, number in filter(None, map(multiple, _extents(function))):
        if not _among(symbol, _known(function)):
            numbers.setdefault(symbol, set()).add(number)
    for symbol, found in numbers.items():
        function = _with_multiples(function, symbol, sorted(found))
    return function


def _with_multiples(function: PrimFunc, symbol: Var, numbers: Sequence[int]) -> PrimFunc:
    """The function with symbols for these multiples of `symbol`, and with that by the least one."""
    least = numbers[0]
    own = {
        number: unused(function, f"{symbol.name}_times_{number}", symbol)
        for number in numbers if number == least or number % least
    }  # fmt: skip
    whole = own[least]

    def replaced(node: tirx.Mul) -> Expr:
        found = multiple(node)
        if found is None or not found[0].same_as(symbol) or found[1] not in numbers:
            return node
        return own[found[1]] if found[1] in own else whole * (found[1] // least)

    changed = tvm_ffi.structural_map(function, (tirx.Mul, replaced))
    changed = substitute(changed, {symbol: whole // least})
    name = symbol.name
    requirements = {f"an extent has to be a multiple of {least}, {least} * {name}": whole % least}
    for number, extent in own.items():
        if number != least:
            said = f"extents have to be {least} * {name} and {number} * {name}"
            requirements[said] = extent * least - whole * number
    return with_requirements(changed, requirements)


def _expression(function: PrimFunc, block: str | None) -> Expr | None:
    """An extent of an argument that is to be a symbol."""
    axes = [axis.dom.extent for axis in product_nest(function, block).block.iter_vars]
    known = _known(function)
    for extent in sorted(_extents(function), key=lambda e: len(line(e))):
        variables = variables_of(extent)
        if not variables or isinstance(extent, Var):
            continue
        if not all(_among(each, known) for each in variables):
            return extent
        plain = all(isinstance(f, Var) or constant(f) is not None for f in factors(extent))
        if not plain and any(_equal(extent, axis) for axis in axes):
            return extent
    return None


def _with_symbol(function: PrimFunc, extent: Expr) -> PrimFunc:
    """The function with a symbol for an extent, and for a single unknown in it what it follows."""
    symbol = unused(function, "extent", extent)

    def replaced(node: OfTwo) -> Expr:
        return symbol if _equal(node, extent) else node

    changed = tvm_ffi.structural_map(function, (get_args(OfTwo), replaced))
    said = _TYPED.sub(r"\1", line(extent))
    known = _known(function)
    unknown = [each for each in variables_of(extent) if not _among(each, known)]
    if not unknown:
        return with_requirements(changed, {f"an extent has to be {said}": symbol - extent})
    linear = detect_linear_equation(extent, unknown[:1])
    if len(linear) != 2 or any(not each.same_as(unknown[0]) for each in unknown):
        return changed
    step, start = linear
    # A host that divided by an extent of 0 would die.
    step = step if constant(step) is not None else tirx.max(step, 1)
    found = (symbol - start) // step
    least = f"an extent has to be {said}, with {unknown[0].name} of 0 or more"
    requirements = {
        f"an extent has to be {said}": (symbol - start) % step,
        least: tirx.min(found, tirx.const(0, symbol.ty.dtype)),
    }
    return with_requirements(substitute(changed, {unknown[0]: found}), requirements)


def _extents(function: PrimFunc) -> list[Expr]:
    return [extent for buffer in arguments_of(function) for extent in buffer.shape]


def _known(function: PrimFunc) -> list[Var]:
    """The symbols that a launch is given, or reads off an extent."""
    return [each for each in (*_extents(function), *function.params) if isinstance(each, Var)]


def _equal(a: Expr, b: Expr) -> bool:
    """Whether two expressions of the same variables are equal, however each is written."""
    variables, own = variables_of(a), variables_of(b)
    alike = len(own) == len(variables) and all(_among(each, variables) for each in own)
    return alike and bool(Analyzer().can_prove_equal(a, b))


def _among(symbol: Var, symbols: Collection[Var]) -> bool:
    return any(each.same_as(symbol) for each in symbols)
