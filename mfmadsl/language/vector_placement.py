"""Applying a layout of vector registers to an operand, and proving it one-to-one and onto."""

from __future__ import annotations

from collections.abc import Mapping

from mfmadsl.language.diagnostic import Diagnostic, LanguageError
from mfmadsl.language.expression import tabulate
from mfmadsl.language.placement import BLOCK, bind, layout_of, rename
from mfmadsl.language.syntax import LayoutItem, OperandField
from mfmadsl.model import Layout


def place_vectors(
    operand: OperandField,
    extents: Mapping[str, int],
    layouts: Mapping[str, LayoutItem],
    elements: int | None,
) -> Layout:
    """The layout of an operand over registers of so many `elements`: its lanes are the registers.

    Without `elements`, a register has as many as the layout fills. `extents` are those of the
    operand's indices. Raises LanguageError with the first rule that the placement breaks.
    """
    item = layout_of(operand, layouts, of_vectors=True)
    indices, constants = bind(operand, item, {**extents, BLOCK: 1})
    rules = {rule.name.text: rule.expression for rule in item.rules}
    renamed = [rename(rules[name], indices) for name in ("register", "element")]
    (row, rows), (column, columns) = ((i.name.text, extents[i.name.text]) for i in operand.indices)
    try:
        slots = tabulate(renamed, constants, ((BLOCK, 1), (row, rows), (column, columns)))
    except LanguageError as error:
        (found,) = error.diagnostics
        message = f"in layout `{item.name.text}`, {found.message}"
        raise LanguageError([Diagnostic(found.code, message, operand.placement.span)]) from None
    pairs = tuple((register, element) for register, element in slots)
    count = elements or max(element for _, element in pairs) + 1
    problem = _fault(operand, pairs, columns, count)
    if problem:
        raise LanguageError([problem])
    return Layout(rows, columns, len(pairs) // count, count, pairs)


def _fault(
    operand: OperandField, slots: tuple[tuple[int, int], ...], columns: int, count: int
) -> Diagnostic | None:
    """Why the slots of all elements are no whole registers of `count` elements each."""
    span, name = operand.placement.span, operand.name.text.upper()
    registers, rest = divmod(len(slots), count)
    if rest:
        message = f"{len(slots)} elements of {name} do not fill registers of {count} each"
        return Diagnostic("registers", message, span)
    holders: dict[tuple[int, int], str] = {}
    for index, slot in enumerate(slots):
        register, element = slot
        told = f"{name}[{index // columns},{index % columns}]"
        if element >= count:
            message = f"{told} falls on element {element}, but a register holds 0 to {count - 1}"
            return Diagnostic("element", message, span)
        if register >= registers:
            message = (
                f"{told} falls on register {register}, but the operand fills "
                f"registers 0 to {registers - 1}"
            )
            hint = "registers count from 0, without gaps, and each is full"
            return Diagnostic("register", message, span, hint)
        first = holders.setdefault(slot, told)
        if first != told:
            message = f"element {element} of register {register} holds both {first} and {told}"
            hint = "two elements must differ in register or element"
            return Diagnostic("collision", message, span, hint)
    return None
