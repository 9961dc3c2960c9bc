"""Rules for reads of the LDS in which lanes exchange elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mfmadsl.language.checker import check_chip, check_fields, repeated
from mfmadsl.language.diagnostic import Diagnostic, LanguageError
from mfmadsl.language.expression import names_in, tabulate
from mfmadsl.language.llvm import check_read
from mfmadsl.language.operand import Found
from mfmadsl.language.syntax import (
    CallField,
    FormulaField,
    Name,
    NamesField,
    ReadField,
    ReadItem,
    SettingsField,
)
from mfmadsl.language.wave import check_waves, wave_of
from mfmadsl.model import Read
from mfmadsl.model.chips import with_followers
from mfmadsl.nearest import did_you_mean

_REQUIRED = ("shape", "from_lane", "from_element", "call", "chips")
_WIDTHS = (32, 64, 128)
"""Bits that a lane reads from the LDS at once."""

_NAMES = ("lane", "register")
_ISA_NAME = re.compile(r"ds_read_b(\d+)_tr_b(\d+)")


def check_read_item(item: ReadItem) -> Read:
    """The model of a read. Raises LanguageError with all that is wrong with it."""
    found: list[Diagnostic] = []
    fields = check_fields("read", item.name, item.fields, _REQUIRED, found)
    chips = _chips(fields.get("chips"))
    wave = wave_of([chip.text for chip in chips])
    shape = _shape(item, fields.get("shape"), wave.lanes, found)
    found += _check_chips(chips)
    formulas = [f for f in item.fields if isinstance(f, FormulaField)]
    for formula in formulas:
        found += _unknown_names(formula)
    call = fields.get("call")
    if isinstance(call, CallField):
        found += check_read(call, chips, shape)
    source = _source(item, formulas, shape, found) if not found else ()
    if found:
        raise LanguageError(sorted(found, key=lambda d: d.span.start))
    assert isinstance(call, CallField)
    names = with_followers(chip.text for chip in chips)
    return Read(item.name.text, item.doc, **shape, source=source, call=call.text, chips=names)


def _shape(item: ReadItem, field: ReadField | None, wave: int, found: Found) -> dict[str, int]:
    """The bits of an element, the lanes of a group, the elements of a lane; {} if wrong."""
    allowed = {
        "bits": (8, 16, 32),
        "lanes": tuple(n for n in range(2, wave + 1) if wave % n == 0),
        "registers": (1, 2, 4, 8, 16),
    }
    if not isinstance(field, SettingsField):
        return {}
    before = len(found)
    found += repeated([s.name for s in field.settings], "shape")
    for setting in field.settings:
        name, value = setting.name.text, setting.value.value
        if name not in allowed:
            hint = did_you_mean(name, list(allowed))
            message = f"the shape of a read has no `{name}`"
            found.append(Diagnostic("shape", message, setting.name.span, hint))
        elif value not in allowed[name]:
            message = f"{name}={value} is none of {_listed(allowed[name])}"
            found.append(Diagnostic("shape", message, setting.value.span))
    shape = {setting.name.text: setting.value.value for setting in field.settings}
    if missing := [name for name in allowed if name not in shape]:
        hint = "the shape of a read is `bits=16 lanes=16 registers=4`"
        message = f"the shape lacks {', '.join(missing)}"
        found.append(Diagnostic("shape", message, field.name.span, hint))
    if len(found) > before:
        return {}
    width = shape["bits"] * shape["registers"]
    if width not in _WIDTHS:
        message = f"a lane reads {shape['registers']} elements of {shape['bits']} bits: {width}"
        hint = f"a lane reads {_listed(_WIDTHS)} bits"
        found.append(Diagnostic("shape", message, field.name.span, hint))
    stated = _ISA_NAME.fullmatch(item.name.text)
    if stated and stated.groups() != (str(width), str(shape["bits"])):
        message = f"the name says another shape than {width} bits of {shape['bits']} each"
        found.append(Diagnostic("name", message, item.name.span))
    return shape


def _chips(field: ReadField | None) -> list[Name]:
    return list(field.names) if isinstance(field, NamesField) else []


def _check_chips(chips: Sequence[Name]) -> Found:
    found = repeated(chips, "chip")
    for chip in chips:
        found += check_chip(chip)
    return [*found, *check_waves(chips)]


def _unknown_names(formula: FormulaField) -> Iterable[Diagnostic]:
    known = (*_NAMES, *(name.upper() for name in _NAMES))
    for name in names_in(formula.expression):
        if name.text not in known:
            message = f"`{name.text}` is neither `lane` nor `register` of the result"
            hint = did_you_mean(name.text, _NAMES)
            yield Diagnostic("unknown-name", message, name.span, hint)


def _source(
    item: ReadItem, formulas: list[FormulaField], shape: dict[str, int], found: Found
) -> tuple[tuple[int, int], ...]:
    """(lane, element) for each lane of a group and each register."""
    lanes, registers = shape["lanes"], shape["registers"]
    from_lane, from_element = sorted(formulas, key=lambda f: f.name.text, reverse=True)
    axes = (("lane", lanes), ("register", registers))
    extents = {name.upper(): extent for name, extent in axes}
    try:
        table = tabulate([from_lane.expression, from_element.expression], extents, axes)
    except LanguageError as error:
        found += error.diagnostics
        return ()
    takers: dict[tuple[int, int], str] = {}
    for index, (lane, element) in enumerate(table):
        taker = f"register {index % registers} of lane {index // registers}"
        if lane >= lanes:
            message = f"{taker} comes from lane {lane}, but a group has lanes 0 to {lanes - 1}"
            found.append(Diagnostic("lane", message, from_lane.expression.span))
            return ()
        if element >= registers:
            message = f"{taker} is element {element}, but a lane reads 0 to {registers - 1}"
            hint = "elements count from the address of the lane, from 0"
            found.append(Diagnostic("register", message, from_element.expression.span, hint))
            return ()
        if (lane, element) in takers:
            first = takers[lane, element]
            message = f"{first} and {taker} are both element {element} of lane {lane}"
            hint = "every element that is read goes to a place of its own"
            found.append(Diagnostic("collision", message, item.name.span, hint))
            return ()
        takers[lane, element] = taker
    return tuple((lane, element) for lane, element in table)


def _listed(numbers: Iterable[int]) -> str:
    *rest, last = (str(number) for number in numbers)
    return f"{', '.join(rest)} or {last}"
