"""Applying a named layout to an operand, and proving that the result is one-to-one and onto."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from mfmadsl.language.diagnostic import Diagnostic, LanguageError
from mfmadsl.language.expression import compile_expression, names_in, tabulate
from mfmadsl.language.syntax import (
    Binary,
    CallArgument,
    Expression,
    LayoutItem,
    Name,
    OperandField,
)
from mfmadsl.language.wave import Wave
from mfmadsl.model import Layout
from mfmadsl.nearest import did_you_mean

BLOCK = "block"
"""The index that every layout sees without being passed it; `BLOCK` is the number of blocks."""


class _Fault(NamedTuple):
    """Why a table is no layout; `{}` stands for the operand's name."""

    code: str
    message: str
    hint: str = ""


def place(
    operand: OperandField,
    extents: Mapping[str, int],
    layouts: Mapping[str, LayoutItem],
    wave: Wave,
) -> Layout:
    """The layout that `operand` gets over a wave; `extents` are those of its indices and `block`.

    Raises LanguageError with the first rule that the placement breaks.
    """
    placement = operand.placement
    item = layout_of(operand, layouts, of_vectors=False)
    indices, constants = bind(operand, item, extents)
    axes = tuple((i.name.text, extents[i.name.text]) for i in operand.indices)
    try:
        arranged = _arrange(
            item, tuple(indices.items()), tuple(constants.items()), extents[BLOCK], axes, wave
        )
    except LanguageError as error:
        (fault,) = error.diagnostics
        message = f"in layout `{item.name.text}`, {fault.message}"
        raise LanguageError([Diagnostic(fault.code, message, placement.span)]) from None
    if isinstance(arranged, _Fault):
        message = arranged.message.replace("{}", operand.name.text.upper())
        raise LanguageError([Diagnostic(arranged.code, message, placement.span, arranged.hint)])
    return arranged


def layout_of(
    operand: OperandField, layouts: Mapping[str, LayoutItem], of_vectors: bool
) -> LayoutItem:
    """The layout that places an operand: of vector registers, or of lanes.

    Raises LanguageError if there is none of that name, or if it is of the other kind.
    """
    name = operand.placement.layout
    fitting = [known for known, item in layouts.items() if item.of_vectors == of_vectors]
    if name.text not in layouts:
        library = "vectors" if of_vectors else "layouts"
        hint = did_you_mean(name.text, fitting)
        hint = hint or f"say `use {library}` at the top of the file to have the library's"
        raise _error("unknown-layout", f"there is no layout `{name.text}`", name, hint)
    item = layouts[name.text]
    if item.of_vectors != of_vectors:
        kinds = (
            ("lanes and their registers", "`lane = ...` and `register = ...`"),
            ("vector registers and their elements", "`register = ...` and `element = ...`"),
        )
        message = f"layout `{name.text}` is of {kinds[item.of_vectors][0]}"
        raise _error("layout-kind", message, name, f"one with {kinds[of_vectors][1]} is wanted")
    return item


def bind(
    operand: OperandField, item: LayoutItem, extents: Mapping[str, int]
) -> tuple[dict[str, str], dict[str, int]]:
    """(parameter -> index, parameter or extent -> number) of a use of a layout."""
    placement, own = operand.placement, [index.name.text for index in operand.indices]
    indices: dict[str, str] = {}
    constants: dict[str, int] = {BLOCK.upper(): extents[BLOCK]}
    parameters = [p.text for p in item.parameters]
    signature = f"{item.name.text}({', '.join(parameters)})"
    for position, argument in enumerate(placement.arguments):
        parameter = _parameter(argument, position, parameters, signature)
        if parameter in indices or parameter in constants:
            where = argument.keyword.span if argument.keyword else argument.value.span
            raise LanguageError([Diagnostic("argument", f"`{parameter}` is given twice", where)])
        names = names_in(argument.value)
        if isinstance(argument.value, Name) and argument.value.text in own:
            indices[parameter] = argument.value.text
            constants[parameter.upper()] = extents[argument.value.text]
        elif names:
            raise _error(
                "argument",
                f"`{names[0].text}` is not an index of `{operand.name.text}`",
                names[0],
                f"an argument is an index, here `{own[0]}` and `{own[1]}`, or a number",
            )
        else:
            constants[parameter] = compile_expression(argument.value)({})
    missing = [p for p in parameters if p not in indices and p not in constants]
    if missing:
        message = f"{signature} also needs `{missing[0]}`"
        raise LanguageError([Diagnostic("argument", message, placement.span)])
    unused = [i.name for i in operand.indices if i.name.text not in indices.values()]
    if unused:
        raise _error(
            "argument",
            f"the layout does not see `{unused[0].text}`: all of its elements would fall on one "
            "place",
            unused[0],
            f"pass it on: `{item.name.text}({', '.join(own)}, ...)`",
        )
    return indices, constants


def _parameter(argument: CallArgument, position: int, parameters: list[str], signature: str) -> str:
    """The parameter that an argument is for."""
    if argument.keyword is None:
        if position < len(parameters):
            return parameters[position]
        message = f"{signature} takes no more"
        raise LanguageError([Diagnostic("argument", message, argument.value.span)])
    name = argument.keyword.text
    if name not in parameters:
        hint = did_you_mean(name, parameters)
        message = f"{signature} has no parameter `{name}`"
        raise _error("argument", message, argument.keyword, hint)
    return name


@cache  # an instruction's operands, and those of its neighbours, lie alike
def _arrange(
    item: LayoutItem,
    indices: tuple[tuple[str, str], ...],
    constants: tuple[tuple[str, int], ...],
    blocks: int,
    axes: tuple[tuple[str, int], tuple[str, int]],
    wave: Wave,
) -> Layout | _Fault:
    """The layout that the rules give over all blocks and both axes, or why there is none."""
    lanes, most = wave
    rules = {rule.name.text: rule.expression for rule in item.rules}
    renamed = [rename(rules[name], dict(indices)) for name in ("lane", "register")]
    (_, rows), (_, columns) = axes
    registers, rest = divmod(blocks * rows * columns, lanes)
    if rest:
        of = f"{blocks} x " if blocks > 1 else ""
        message = f"{of}{rows}x{columns} elements of {{}} do not fill {lanes} lanes evenly"
        return _Fault("lanes", message)
    if registers > most:  # one operand may have all registers of a lane
        message = f"a lane would hold {registers} elements of {{}}, more than {most}"
        return _Fault("registers", message, f"a wave has {most} registers of 32 bits a lane")
    slots = tabulate(renamed, dict(constants), ((BLOCK, blocks), *axes))
    holders: dict[tuple[int, ...], int] = {}
    for index, slot in enumerate(slots):
        lane, register = slot
        if lane >= lanes or register >= registers:
            element = _element(index, blocks, rows, columns)
            return _outside(element, lane, register, lanes, registers)
        if holders.setdefault(slot, index) != index:
            first = _element(holders[slot], blocks, rows, columns)
            second = _element(index, blocks, rows, columns)
            message = f"lane {lane} holds both {first} and {second} in register {register}"
            return _Fault("collision", message, "two elements must differ in lane or register")
    pairs = tuple((lane, register) for lane, register in slots)
    return Layout(rows, columns, lanes, registers, pairs, blocks)


def _element(index: int, blocks: int, rows: int, columns: int) -> str:
    block, index = divmod(index, rows * columns)
    place = f"{index // columns},{index % columns}"
    return f"{{}}[{place}]" if blocks == 1 else f"{{}}[{place}] of block {block}"


def _outside(element: str, lane: int, register: int, lanes: int, registers: int) -> _Fault:
    if lane >= lanes:
        message = f"{element} falls on lane {lane}, but a wave has lanes 0 to {lanes - 1}"
        return _Fault("lane", message)
    return _Fault(
        "register",
        f"{element} falls on register {register}, but {lanes} lanes hold the operand "
        f"in registers 0 to {registers - 1}",
        "registers count the elements of one lane, from 0 and without gaps",
    )


def rename(expression: Expression, indices: Mapping[str, str]) -> Expression:
    """A rule in terms of the operand's indices instead of the layout's parameters."""
    if isinstance(expression, Name):
        return expression._replace(text=indices.get(expression.text, expression.text))
    if isinstance(expression, Binary):
        return expression._replace(
            left=rename(expression.left, indices), right=rename(expression.right, indices)
        )
    return expression


def _error(code: str, message: str, name: Name, hint: str = "") -> LanguageError:
    return LanguageError([Diagnostic(code, message, name.span, hint)])
