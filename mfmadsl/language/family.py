"""Entries that differ in types or in the size of their tile, written down once.

A `names` field has a name with parameters, such as "mfma_f32_16x16x32_{a}_{b}" or
"avx512_f32_{m}x{n}". An intrinsic stands for one entry for each pair of the types of A and B, a
micro-kernel for one for each of its shapes; `call`, `alias` and the comment may have the parameters
too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

from mfmadsl.language.diagnostic import Diagnostic, LanguageError
from mfmadsl.language.syntax import (
    CallField,
    Field,
    IntrinsicItem,
    MicrokernelItem,
    Name,
    NamesField,
    OperandField,
    SettingsField,
)
from mfmadsl.model import ELEMENT_TYPES

_PARAMETER = re.compile(r"\{([^{}]*)\}")
_TYPES, _SIZES = ("a", "b"), ("m", "n", "k")


def intrinsics_of(item: IntrinsicItem) -> list[IntrinsicItem]:
    """The entries that an item stands for; itself, if it has no `names`.

    Raises LanguageError for a parameter that there is not, and for two entries of one name.
    """
    names = _names(item)
    if names is None:
        return [item]
    found = []
    for a, b in product(_typed(item, "a"), _typed(item, "b")):
        values = {"a": _short(a), "b": _short(b)}
        own = (_of_types(each, a, b) for each in item.fields if each is not names)
        fields = tuple(_with_values(field, values) for field in own if field is not None)
        name = _named(names, values, _TYPES)
        found.append(IntrinsicItem(name, _filled(item.doc, values), fields))
    _check_names(found, names)
    return found


def microkernels_of(item: MicrokernelItem) -> list[MicrokernelItem]:
    """The micro-kernels that an item stands for; itself, if it has no `names`.

    Raises LanguageError as `intrinsics_of` does.
    """
    names = _names(item)
    if names is None:
        return [item]
    shapes = [f for f in item.fields if isinstance(f, SettingsField) and f.name.text == "shape"]
    found = []
    for shape in shapes:
        values = {each.name.text: str(each.value.value) for each in shape.settings}
        fields = tuple(f for f in item.fields if f is not names and (f not in shapes or f is shape))
        found.append(
            MicrokernelItem(_named(names, values, _SIZES), _filled(item.doc, values), fields)
        )
    _check_names(found, names)
    return found


def _names(item: IntrinsicItem | MicrokernelItem) -> CallField | None:
    given = [f for f in item.fields if isinstance(f, CallField) and f.name.text == "names"]
    if len(given) > 1:
        message = "field `names` is given twice"
        raise LanguageError([Diagnostic("duplicate", message, given[1].name.span)])
    return given[0] if given else None


def _typed(item: IntrinsicItem, operand: str) -> Iterator[Name]:
    for field in item.fields:
        if isinstance(field, OperandField) and field.name.text == operand:
            yield from field.types


def _of_types(field: Field, a: Name, b: Name) -> Field | None:
    """A field of the entry whose A and B have these types; None if it is that of others."""
    wanted = {"a": a, "b": b}
    if not isinstance(field, OperandField) or field.name.text not in wanted:
        return field
    name = wanted[field.name.text]
    return field._replace(types=(name,)) if any(each is name for each in field.types) else None


def _with_values(field: Field, values: Mapping[str, str]) -> Field:
    if isinstance(field, CallField):
        return field._replace(text=_filled(field.text, values))
    if isinstance(field, NamesField):
        filled = (name._replace(text=_filled(name.text, values)) for name in field.names)
        return field._replace(names=tuple(filled))
    return field


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with what is known of its parameters; what is left is somebody else's mistake."""
    return _PARAMETER.sub(lambda found: values.get(found[1], found[0]), text)


def _named(names: CallField, values: Mapping[str, str], known: tuple[str, ...]) -> Name:
    for parameter in _PARAMETER.findall(names.text):
        if parameter not in known:
            hint = f"there are {', '.join(f'{{{each}}}' for each in known)}"
            message = f"`{{{parameter}}}` is no parameter of a name"
            raise LanguageError([Diagnostic("name", message, names.span, hint)])
    return Name(_filled(names.text, values), names.span)


def _check_names(found: list[IntrinsicItem] | list[MicrokernelItem], names: CallField) -> None:
    given = [item.name.text for item in found]
    for name in given:
        if given.count(name) > 1:
            message = f"two entries would be called `{name}`"
            hint = "the name needs a parameter for what they differ in"
            raise LanguageError([Diagnostic("name", message, names.span, hint)])


def _short(name: Name) -> str:
    """A type as instruction names have it; what is none is told where types are checked."""
    known = ELEMENT_TYPES.get(name.text)
    return known.short if known else name.text
