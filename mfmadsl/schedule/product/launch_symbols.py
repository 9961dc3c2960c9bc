"""Symbols that a launch can tell: those that are extents of arguments by themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from tvm import tirx
from tvm.s_tir import SBlock
from tvm.sym import Analyzer
from tvm.tirx import Buffer, Expr, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.kernel.factor import factors_of
from mfmadsl.passes.kernel.requirement import with_requirements
from mfmadsl.passes.tir.expression import among, constant, substitute, variables_of
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.nest import same


def with_launch_symbols(function: PrimFunc) -> PrimFunc:
    """The function, in which each symbol is an extent of an argument, or a parameter.

    Where 2 * n is an extent and n is none, 2 * n becomes a symbol, and n its half: a launch reads
    symbols off the extents. That it is even, the root block says (`passes/kernel/requirement.py`).
    An extent of n + 1, or of another expression that is no product, becomes a symbol, too: of a
    symbol TVM proves that tiles cover it. That it is n + 1 the root block says.

    Raises ScheduleError where a symbol cannot be found from the extents.
    """
    function = _multiples_as_symbols(_expressions_as_symbols(function))
    blocks: list[SBlock] = []
    walk(function.body, (SBlock, blocks.append))
    known = [*_known(function), *(axis.var for block in blocks for axis in block.iter_vars)]
    factors = factors_of(function)
    used = [v for extent in _extents(function) for v in variables_of(extent)]
    for symbol in [*used, *undefined_vars(function.body, function.params)]:
        if not among(symbol, known) and symbol.name not in factors:
            raise ScheduleError(
                f"workload: `{symbol.name}` cannot be found from the extents of the arguments: make"
                " it an extent of one by itself"
            )
    return function


def arguments_of(function: PrimFunc) -> list[Buffer]:
    """The buffers that a function takes."""
    return [each for each in function.params if getattr(each, "shape", None) is not None]


def unused(function: PrimFunc, name: str, like: Expr) -> Var:
    """A symbol of that name and of the type of `like`, with a number if there is one already."""
    there = [function.body, *_extents(function), *function.params]
    names = {variable.name for each in there for variable in variables_of(each)}
    tried = (name if i == 0 else f"{name}_{i}" for i in count())
    return Var(next(each for each in tried if each not in names), like.ty)


def _expressions_as_symbols(function: PrimFunc) -> PrimFunc:
    """The function with symbols for extents that are neither numbers, symbols nor products, where
    a launch can tell what they are made of."""
    while (found := _expression(function)) is not None:
        extent, shift = found
        if isinstance(product := Analyzer().simplify(extent), tirx.Mul):
            function = _with_expression(function, extent, product)
            continue
        whole = unused(function, _spoken(extent), extent)
        said = f"{whole.name} has to be {extent}"
        function = _with_expression(function, extent, whole)
        if shift is None:
            function = with_requirements(function, {said: whole - extent})
            continue
        symbol, more = shift
        function = substitute(function, {symbol: whole - more})
        if more > 1:  # of no more than one a symbol from 0 on is left by any extent
            too_few = tirx.Cast(str(whole.ty.dtype), whole < more)
            said = f"{said}, of {symbol.name} from 0 on"
            function = with_requirements(function, {said: too_few})
    return function


def _with_expression(function: PrimFunc, extent: Expr, other: Expr) -> PrimFunc:
    """The function with another expression for an extent, however TVM has written it: loops have it
    simplified."""
    written = Analyzer().simplify(extent)

    def replaced(node: Expr) -> Expr:
        if not any(v.same_as(variables_of(extent)[0]) for v in variables_of(node)):
            return node
        return other if same(Analyzer().simplify(node), written) else node

    kinds = tuple({type(extent), type(written)})
    return mapped(function, (kinds, replaced))


def _expression(function: PrimFunc) -> tuple[Expr, tuple[Var, int] | None] | None:
    """An extent of an argument that is to become a symbol, and (n, 1) of n + 1 if it tells n."""
    multiples = [each[0] for each in filter(None, map(_multiple, _extents(function)))]
    known = [*_known(function), *multiples]
    for extent in _extents(function):
        if isinstance(extent, Var | tirx.Mul) or constant(extent) is not None:
            continue
        if all(among(v, known) for v in variables_of(extent)):
            return extent, None
        if (shift := _shift(extent)) is not None:
            return extent, shift
    return None


def _shift(extent: Expr) -> tuple[Var, int] | None:
    """(n, 1) of n + 1."""
    if isinstance(extent, tirx.Sub):
        extent = extent.a + -extent.b
    if not isinstance(extent, tirx.Add):
        return None
    for symbol, more in ((extent.a, extent.b), (extent.b, extent.a)):
        number = constant(more)
        if isinstance(symbol, Var) and number is not None:
            return symbol, number
    return None


def _spoken(extent: Expr) -> str:
    """A name for an expression, such as `n_plus_1`."""
    text = str(extent)
    for sign, word in (("//", "over"), ("*", "times"), ("+", "plus"), ("-", "minus")):
        text = text.replace(sign, word)
    text = re.sub(r"[() ]+", "_", text).strip("_")
    return text if re.fullmatch(r"[A-Za-z]\w*", text) else "extent"


def _multiples_as_symbols(function: PrimFunc) -> PrimFunc:
    """The function with symbols for the multiples of each symbol that is no extent by itself."""
    known = _known(function)
    numbers: dict[Var, set[int]] = {}
    for symbol, number in filter(None, map(_multiple, _extents(function))):
        if not among(symbol, known):
            numbers.setdefault(symbol, set()).add(number)
    for symbol, found in numbers.items():
        function = _with_multiples(function, symbol, sorted(found))
    return function


def _with_multiples(function: PrimFunc, symbol: Var, numbers: Sequence[int]) -> PrimFunc:
    """The function with symbols for these multiples of `symbol`, and with that by the least one."""
    least, *others = numbers
    own = {
        number: unused(function, f"{symbol.name}_times_{number}", symbol)
        for number in [least, *(number for number in others if number % least)]
    }
    whole = own[least]

    def replaced(node: tirx.Mul) -> Expr:
        found = _multiple(node)
        if found is None or not found[0].same_as(symbol) or found[1] not in numbers:
            return node
        return own[found[1]] if found[1] in own else whole * (found[1] // least)

    changed = mapped(function, (tirx.Mul, replaced))
    changed = substitute(changed, {symbol: whole // least})
    requirements = {f"{whole.name} has to be a multiple of {least}": whole % least}
    for number, extent in own.items():
        if number != least:
            said = f"{whole.name} and {extent.name} have to be {least} and {number} times the same"
            requirements[said] = extent * least - whole * number
    return with_requirements(changed, requirements)


def _multiple(extent: Expr) -> tuple[Var, int] | None:
    """(n, 2) of 2 * n."""
    if not isinstance(extent, tirx.Mul):
        return None
    for symbol, factor in ((extent.a, extent.b), (extent.b, extent.a)):
        number = constant(factor)
        if isinstance(symbol, Var) and number is not None and number > 1:
            return symbol, number
    return None


def _extents(function: PrimFunc) -> list[Expr]:
    return [extent for buffer in arguments_of(function) for extent in buffer.shape]


def _known(function: PrimFunc) -> list[Var]:
    """The symbols that a launch is given, or reads off an extent."""
    return [each for each in (*_extents(function), *function.params) if isinstance(each, Var)]
