"""Rules for fragments: tiles that lanes hold, of no instruction that the project makes code for."""

from __future__ import annotations

from collections.abc import Mapping

from mfmadsl.language.checker import check_fields, repeated
from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Span
from mfmadsl.language.element import element_type
from mfmadsl.language.operand import Found, whole_registers
from mfmadsl.language.placement import BLOCK, place
from mfmadsl.language.syntax import FragmentItem, LayoutItem, OperandField, SettingsField
from mfmadsl.language.wave import Wave
from mfmadsl.model import EXTENT_OF, INDICES, Fragment, Operand
from mfmadsl.nearest import did_you_mean

_REQUIRED = ("shape", "holds")
_EXTENTS = ("m", "n", "k", "lanes")
_LARGEST = {"m": 256, "n": 512, "k": 512, "lanes": 256}
_ELEMENTS = 512
"""The most of a lane: of 32 bits, what a lane of NVIDIA's tensor memory has (PTX ISA, 9.7.16)."""


def check_fragment(item: FragmentItem, layouts: Mapping[str, LayoutItem]) -> Fragment:
    """The model of a fragment. Raises LanguageError with all that is wrong with it."""
    found: list[Diagnostic] = []
    fields = check_fields("fragment", item.name, item.fields, _REQUIRED, found)
    holds, shape = fields.get("holds"), _shape(fields.get("shape"), found)
    operand = _operand(holds, shape, layouts, found) if isinstance(holds, OperandField) else None
    if found or operand is None:
        raise LanguageError(sorted(found, key=lambda d: d.span.start))
    return Fragment(item.name.text, item.doc, operand)


def _shape(field: object, found: Found) -> dict[str, int] | None:
    """The extents and lanes that are stated; None if one of them is wrong."""
    if not isinstance(field, SettingsField):
        return None
    before = len(found)
    found += repeated([setting.name for setting in field.settings], "shape")
    for setting in field.settings:
        name, value = setting.name.text, setting.value.value
        if name not in _EXTENTS:
            message = f"the shape of a fragment has no `{name}`"
            hint = did_you_mean(name, _EXTENTS)
            found.append(Diagnostic("shape", message, setting.name.span, hint))
        elif not 1 <= value <= _LARGEST[name]:
            message = f"{name}={value} is not from 1 to {_LARGEST[name]}"
            found.append(Diagnostic("shape", message, setting.value.span))
    shape = {setting.name.text: setting.value.value for setting in field.settings}
    if "lanes" not in shape:
        hint = "the shape of a fragment is such as `m=16 k=16 lanes=32`"
        found.append(Diagnostic("shape", "the shape lacks lanes", field.name.span, hint))
    return shape if len(found) == before else None


def _operand(
    field: OperandField, shape: Mapping[str, int] | None, layouts: Mapping[str, LayoutItem],
    found: Found,
) -> Operand | None:  # fmt: skip
    """What the fragment holds; None if it is wrong."""
    before = len(found)
    dtype = element_type(field.types[0], found)
    for other in field.types[1:]:
        message = "a fragment holds elements of one type"
        found.append(Diagnostic("type", message, other.span, "write a fragment for each"))
    first, second = field.indices
    span = Span(field.span.source, first.span.start, second.span.end)
    indices = first.name.text, second.name.text
    name = next((name for name in "abc" if INDICES[name] == indices), None)
    if name is None or first.group * second.group != 1:
        message = "a fragment is indexed [i, k] as A, [k, j] as B, or [i, j] as C"
        found.append(Diagnostic("indices", message, span))
    if len(found) > before or shape is None or name is None or dtype is None:
        return None
    wanted = [EXTENT_OF[index] for index in indices]
    if missing := [extent for extent in wanted if extent not in shape]:
        message = f"`{indices[wanted.index(missing[0])]}` has no extent"
        hint = f"the shape says it as `{missing[0]}=16`"
        found.append(Diagnostic("shape", message, span, hint))
        return None
    extents = {index: shape[EXTENT_OF[index]] for index in indices}
    try:
        layout = place(field, {**extents, BLOCK: 1}, layouts, Wave(shape["lanes"], _ELEMENTS))
    except LanguageError as error:
        found += error.diagnostics
        return None
    found += whole_registers(field, layout, dtype)
    return Operand(name, dtype, layout)
