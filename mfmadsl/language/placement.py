"""Applying a named layout to an operand, and proving that the result is one-to-one and onto."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mfmadsl.language.diagnostic import Diagnostic, LanguageError, did_you_mean
from mfmadsl.language.expression import compile_expression, names_in, tabulate
from mfmadsl.language.syntax import Binary, Expression, LayoutItem, Name, OperandField
from mfmadsl.model import WAVE_SIZE, Layout


def place(
    operand: OperandField, extents: Mapping[str, int], layouts: Mapping[str, LayoutItem]
) -> Layout:
    """The layout that `operand` gets; `extents` holds the sizes of i, j and k.

    Raises LanguageError with every rule that the placement breaks.
    """
    placement = operand.placement
    item = layouts.get(placement.layout.text)
    if item is None:
        hint = did_you_mean(placement.layout.text, list(layouts))
        raise _error(
            "unknown-layout",
            f"there is no layout `{placement.layout.text}`",
            placement.layout,
            hint or "say `use layouts` at the top of the file to have the library's",
        )
    indices, constants = _bind(operand, item, extents)
    rules = {rule.name.text: rule.expression for rule in item.rules}
    renamed = [_rename(rules[name], indices) for name in ("lane", "register")]
    axes = [(index.text, extents[index.text]) for index in operand.indices]
    try:
        slots = tabulate(renamed, constants, axes)
    except LanguageError as error:
        (fault,) = error.diagnostics
        message = f"in layout `{item.name.text}`, {fault.message}"
        raise LanguageError([Diagnostic(fault.code, message, placement.span)]) from None
    return _checked(operand, extents, slots)


def _bind(
    operand: OperandField, item: LayoutItem, extents: Mapping[str, int]
) -> tuple[dict[str, str], dict[str, int]]:
    """(parameter -> index, parameter or extent -> number) of a use of a layout."""
    placement, own = operand.placement, {name.text for name in operand.indices}
    indices: dict[str, str] = {}
    constants: dict[str, int] = {}
    parameters = [p.text for p in item.parameters]
    signature = f"{item.name.text}({', '.join(parameters)})"
    for position, argument in enumerate(placement.arguments):
        if argument.keyword is not None:
            parameter = argument.keyword.text
            where = argument.keyword.span
            if parameter not in parameters:
                raise _error(
                    "argument",
                    f"{signature} has no parameter `{parameter}`",
                    argument.keyword,
                    did_you_mean(parameter, parameters),
                )
        elif position < len(parameters):
            parameter, where = parameters[position], argument.value.span
        else:
            raise LanguageError(
                [Diagnostic("argument", f"{signature} takes no more", argument.value.span)]
            )
        if parameter in indices or parameter in constants:
            raise LanguageError([Diagnostic("argument", f"`{parameter}` is given twice", where)])
        names = names_in(argument.value)
        if isinstance(argument.value, Name) and argument.value.text in own:
            indices[parameter] = argument.value.text
            constants[parameter.upper()] = extents[argument.value.text]
        elif names:
            expected = " and ".join(f"`{name.text}`" for name in operand.indices)
            raise _error(
                "argument",
                f"`{names[0].text}` is not an index of `{operand.name.text}`",
                names[0],
                f"an argument is an index, here {expected}, or a number",
            )
        else:
            constants[parameter] = compile_expression(argument.value)({})
    missing = [p for p in parameters if p not in indices and p not in constants]
    if missing:
        raise LanguageError(
            [Diagnostic("argument", f"{signature} also needs `{missing[0]}`", placement.span)]
        )
    unused = [name for name in operand.indices if name.text not in indices.values()]
    if unused:
        raise _error(
            "argument",
            f"the layout does not see `{unused[0].text}`: "
            f"all of its elements would fall on one place",
            unused[0],
            f"pass it on: `{item.name.text}({', '.join(n.text for n in operand.indices)}, ...)`",
        )
    return indices, constants


def _rename(expression: Expression, indices: Mapping[str, str]) -> Expression:
    """A rule in terms of the operand's indices instead of the layout's parameters."""
    if isinstance(expression, Name):
        return expression._replace(text=indices.get(expression.text, expression.text))
    if isinstance(expression, Binary):
        return expression._replace(
            left=_rename(expression.left, indices), right=_rename(expression.right, indices)
        )
    return expression


def _checked(
    operand: OperandField, extents: Mapping[str, int], slots: Sequence[tuple[int, ...]]
) -> Layout:
    """The layout of a table of (lane, register), if it is one-to-one and onto."""
    name = operand.name.text.upper()
    rows, columns = (extents[index.text] for index in operand.indices)
    registers, rest = divmod(rows * columns, WAVE_SIZE)
    if rest:
        message = f"{rows}x{columns} elements of {name} do not fill {WAVE_SIZE} lanes evenly"
        raise LanguageError([Diagnostic("lanes", message, operand.placement.span)])
    holders: dict[tuple[int, int], str] = {}
    for index, (lane, register) in enumerate(slots):
        row, column = divmod(index, columns)
        element = f"{name}[{row},{column}]"
        _check_slot(element, lane, register, registers, operand)
        first = holders.setdefault((lane, register), element)
        if first is not element:
            message = f"lane {lane} holds both {first} and {element} in register {register}"
            hint = "two elements must differ in lane or register"
            raise LanguageError([Diagnostic("collision", message, operand.placement.span, hint)])
    return Layout(rows, columns, WAVE_SIZE, registers, tuple(holders))


def _check_slot(
    element: str, lane: int, register: int, registers: int, operand: OperandField
) -> None:
    span = operand.placement.span
    if lane >= WAVE_SIZE:
        message = f"{element} falls on lane {lane}, but a wave has lanes 0 to {WAVE_SIZE - 1}"
        raise LanguageError([Diagnostic("lane", message, span)])
    if register >= registers:
        message = (
            f"{element} falls on register {register}, but {WAVE_SIZE} lanes hold the operand "
            f"in registers 0 to {registers - 1}"
        )
        hint = "registers count the elements of one lane, from 0 and without gaps"
        raise LanguageError([Diagnostic("register", message, span, hint)])


def _error(code: str, message: str, name: Name, hint: str = "") -> LanguageError:
    return LanguageError([Diagnostic(code, message, name.span, hint)])
