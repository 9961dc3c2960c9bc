"""Syntax tree to model: every rule that is not a matter of grammar."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import product
from typing import Protocol, TypeVar

from mfmadsl.language.diagnostic import Diagnostic, LanguageError
from mfmadsl.language.expression import names_in
from mfmadsl.language.llvm import check_call, check_signature
from mfmadsl.language.naming import check_agreement, check_name
from mfmadsl.language.operand import Found, check_operand, check_types
from mfmadsl.language.placement import BLOCK
from mfmadsl.language.syntax import (
    CallField,
    Field,
    IntrinsicItem,
    LayoutItem,
    Name,
    NamesField,
    OperandField,
    SettingsField,
)
from mfmadsl.language.wave import check_waves, wave_of
from mfmadsl.model import (
    ARCHITECTURES,
    INDEX,
    MODIFIERS,
    REGISTER_BITS,
    Intrinsic,
    Operand,
    negation_chips,
)
from mfmadsl.model.chip_name import unknown_chip
from mfmadsl.model.chips import with_followers
from mfmadsl.nearest import did_you_mean

_DIMENSIONS = ("m", "n", "k")
_LARGEST_DIMENSION = 128
_REQUIRED = ("shape", "a", "b", "c", "call", "cycles")
_VARIED = ("a", "b")  # the operands that may take one of several types
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LLVM_INTRINSIC = re.compile(r"llvm\.amdgcn(\.[a-z0-9]+)+")


def check_layout(item: LayoutItem) -> Found:
    """What is wrong with a layout's definition, whoever uses it."""
    found: Found = []
    parameters = [p.text for p in item.parameters]
    for parameter in item.parameters:
        if parameter.text != parameter.text.lower():
            hint = f"a parameter is lower case: `{parameter.text.upper()}` is its extent"
            found.append(_at(parameter, "parameter", f"`{parameter.text}` has capitals", hint))
        if parameter.text == BLOCK:
            message = f"`{BLOCK}` is known to every layout without being passed"
            found.append(_at(parameter, "parameter", message))
    found += repeated(item.parameters, "parameter")
    found += repeated([rule.name for rule in item.rules], "rule")
    known = {*parameters, *(p.upper() for p in parameters), BLOCK, BLOCK.upper()}
    wanted = ("register", "element") if item.of_vectors else ("lane", "register")
    for rule in item.rules:
        if rule.name.text == "lane" and item.of_vectors:
            message = "a layout is of lanes or of vector registers"
            hint = "it says `lane` and `register`, or `register` and `element`"
            found.append(_at(rule.name, "rule", message, hint))
        elif rule.name.text not in wanted:
            hint = did_you_mean(rule.name.text, ["lane", "register", "element"])
            found.append(_at(rule.name, "rule", f"a layout has no `{rule.name.text}`", hint))
        for name in names_in(rule.expression):
            if name.text not in known:
                message = f"`{name.text}` is no parameter of `{item.name.text}`"
                found.append(
                    _at(name, "unknown-name", message, did_you_mean(name.text, parameters))
                )
    for required in wanted:
        if required not in [rule.name.text for rule in item.rules]:
            message = f"layout `{item.name.text}` does not say the `{required}`"
            found.append(_at(item.name, "rule", message, f"add `{required} = ...`"))
    return found


def check_intrinsic(item: IntrinsicItem, layouts: Mapping[str, LayoutItem]) -> list[Intrinsic]:
    """The model of an entry: one instruction, or one for each pair of the types of A and B.

    Raises LanguageError with all that is wrong with it, in the order of the text.
    """
    found = check_name(item.name)
    once = [f.name for f in item.fields if f.name.text not in _VARIED]
    found += repeated(once, "field")
    fields: dict[str, Field] = {field.name.text: field for field in item.fields}
    found += lacking("intrinsic", item.name, fields, _REQUIRED)
    shape = check_shape(fields.get("shape"), found)
    cycles = _cycles(fields.get("cycles"), found)
    narrow_cycles = _cycles(fields.get("narrow_cycles"), found)
    call = _call(fields.get("call"), found)
    wave = wave_of([chip for chip, _ in cycles])
    operands: dict[str, list[Operand]] = {}
    for field in item.fields:
        if isinstance(field, OperandField):
            placed = check_operand(field, shape, layouts, wave, found)
            operands.setdefault(field.name.text, []).extend(placed)
    found += _check_type_lists([f for f in item.fields if isinstance(f, OperandField)])
    chips = tuple(chip for chip, _ in cycles)
    found += check_types(item, operands, chips)
    aliases = _names(fields.get("alias"))
    found += repeated(aliases, "alias")
    for alias in aliases:
        if not _WORD.fullmatch(alias.text):
            found.append(_at(alias, "name", f'"{alias.text}" is no name of an instruction', ""))
    modifiers = _modifiers(fields.get("modifiers"), shape, operands, chips, found)
    if shape:
        call_field = fields.get("call")
        stated = call_field if isinstance(call_field, CallField) else None
        found += check_agreement(item, aliases, stated, shape, operands)
    scales = tuple(o for name in ("scale_a", "scale_b") for o in operands.get(name, ()))
    if ("scale_a" in fields) != ("scale_b" in fields):
        message = f"intrinsic `{item.name.text}` scales only one of its operands"
        found.append(_at(item.name, "field", message, "give both `scale_a` and `scale_b`"))
    if found or shape is None:
        raise LanguageError(sorted(found, key=lambda d: d.span.start))
    pairs = list(product(operands["a"], operands["b"]))
    several = len(pairs) > 1
    own = (f"v_{item.name.text}",) if several else ()
    stated_call = fields["call"]
    assert isinstance(stated_call, CallField)
    described = [
        Intrinsic(
            name=_variant(item.name.text, a, b) if several else item.name.text,
            doc=item.doc,
            m=shape["m"],
            n=shape["n"],
            k=shape["k"],
            blocks=shape["blocks"],
            a=a,
            b=b,
            c=operands["c"][0],
            call=call,
            cycles=cycles if _wide(a, b) else narrow_cycles or cycles,
            aliases=(*own, *(name.text for name in aliases)),
            modifiers=modifiers,
            scales=scales,
            in_llvm=not stated_call.unknown,
        )
        for a, b in pairs
    ]
    found += check_signature(stated_call, described)
    if found:
        raise LanguageError(found)
    return described


def _check_type_lists(fields: list[OperandField]) -> Found:
    """Only A and B come in several types, and in each of them once."""
    found: Found = []
    for name in dict.fromkeys(field.name.text for field in fields):
        types = [each for field in fields if field.name.text == name for each in field.types]
        if name not in _VARIED and len(types) > 1:
            message = f"`{name}` has several types, where only `a` and `b` may"
            found.append(_at(types[1], "type", message, "write an entry for each type"))
        else:
            found += repeated(types, "type")
    return found


def _wide(a: Operand, b: Operand) -> bool:
    """An operand of eight bits or more slows down those that also take narrower ones."""
    return max(a.type.bits, b.type.bits) >= 8


def _variant(name: str, a: Operand, b: Operand) -> str:
    return f"{name}_{a.type.short}_{b.type.short}"


class _Named(Protocol):
    @property
    def name(self) -> Name: ...


NamedField = TypeVar("NamedField", bound=_Named)


def check_fields(
    kind: str, name: Name, fields: Sequence[NamedField], required: Iterable[str], found: Found
) -> dict[str, NamedField]:
    """The fields of an entry, of which each is given once; and whether its name can be one."""
    found += check_name(name)
    found += repeated([field.name for field in fields], "field")
    given = {field.name.text: field for field in fields}
    found += lacking(kind, name, given, required)
    return given


def lacking(kind: str, name: Name, fields: Container[str], required: Iterable[str]) -> Found:
    """A mistake for each field that an entry has to have, and has not."""
    return [
        _at(name, "field", f"{kind} `{name.text}` has no `{field}`", f"add a line `{field} ...`")
        for field in required
        if field not in fields
    ]


def check_shape(field: object, found: Found) -> dict[str, int] | None:
    """The extents of m, n and k and the number of blocks, or None where they are wrong."""
    if not isinstance(field, SettingsField):
        return None
    before = len(found)
    found += repeated([s.name for s in field.settings], "shape")
    shape = {"blocks": 1}
    for setting in field.settings:
        name, value = setting.name, setting.value
        if name.text not in (*_DIMENSIONS, "blocks"):
            hint = did_you_mean(name.text, (*_DIMENSIONS, "blocks"))
            found.append(_at(name, "shape", f"a shape has no `{name.text}`", hint))
        elif not 1 <= value.value <= _LARGEST_DIMENSION:
            message = f"{name.text}={value.value} is not between 1 and {_LARGEST_DIMENSION}"
            found.append(Diagnostic("shape", message, value.span))
        shape[name.text] = value.value
    missing = [d for d in _DIMENSIONS if d not in shape]
    if missing:
        hint = "a shape reads `m=16 n=16 k=16`"
        found.append(_at(field.name, "shape", f"the shape lacks {', '.join(missing)}", hint))
    return shape if len(found) == before else None


def check_single_shape(spoken: str, field: object, found: Found) -> dict[str, int] | None:
    """The extents of m, n and k of what multiplies a single tile, or None where they are wrong."""
    shape = check_shape(field, found)
    if shape and shape.pop("blocks") > 1:
        assert isinstance(field, SettingsField)
        message = f"{spoken} multiplies one tile: it has no blocks"
        found.append(_at(field.name, "shape", message))
    return shape


def _cycles(field: Field | None, found: Found) -> tuple[tuple[str, int], ...]:
    if not isinstance(field, SettingsField):
        return ()
    found += repeated([s.name for s in field.settings], "chip")
    for setting in field.settings:
        found += check_chip(setting.name)
        value = setting.value
        if not value.value:
            found.append(Diagnostic("cycles", "an instruction takes a cycle or more", value.span))
    found += check_waves([setting.name for setting in field.settings])
    stated = {s.name.text: s.value.value for s in field.settings}
    return tuple((chip, stated[_leader(chip, stated)]) for chip in with_followers(stated))


def _leader(chip: str, stated: Container[str]) -> str:
    """The chip whose cycles are meant: itself, or the one whose instructions it has."""
    return chip if chip in stated else ARCHITECTURES[chip].instructions_of


def check_chip(chip: Name) -> Found:
    """A mistake where the name is of no chip with matrix cores."""
    if chip.text in ARCHITECTURES:
        return []
    why = unknown_chip(chip.text)  # of those of another kind it says which
    if not why.startswith("unknown"):
        return [_at(chip, "chip", why)]
    hint = did_you_mean(chip.text, list(ARCHITECTURES))
    return [_at(chip, "chip", f"`{chip.text}` is no chip with matrix cores", hint)]


def _call(field: Field | None, found: Found) -> str:
    if not isinstance(field, CallField):
        return ""
    if not _LLVM_INTRINSIC.fullmatch(field.text):
        hint = 'an intrinsic of the AMDGPU back end: "llvm.amdgcn.mfma.f32.16x16x16f16"'
        message = f'"{field.text}" is no LLVM intrinsic'
        found.append(Diagnostic("call", message, field.span, hint))
    else:
        found += check_call(field)
    return field.text


def _names(field: Field | None) -> tuple[Name, ...]:
    return field.names if isinstance(field, NamesField) else ()


def _modifiers(
    field: Field | None,
    shape: Mapping[str, int] | None,
    operands: Mapping[str, list[Operand]],
    chips: tuple[str, ...],
    found: Found,
) -> tuple[str, ...]:
    names = _names(field)
    found += repeated(names, "modifier")
    for name in names:
        if name.text not in MODIFIERS:
            hint = did_you_mean(name.text, MODIFIERS)
            found.append(_at(name, "modifier", f"`{name.text}` is no modifier", hint))
        sparse = any(a.sparse for a in operands.get("a", ()))
        if name.text == "cbsz_abid" and shape and shape["blocks"] == 1 and not sparse:
            message = "cbsz and abid choose among blocks, and the instruction has one"
            found.append(_at(name, "modifier", message))
        if name.text == "cbsz_abid" and any(_index_fills(a) for a in operands.get("a", ())):
            message = "cbsz and abid choose among sets of the index, and the instruction has one"
            found.append(_at(name, "modifier", message))
        if name.text == "neg" and any(a.type.name != "float64" for a in operands.get("a", ())):
            found.append(_at(name, "modifier", "negation is of float64 only"))
        if name.text == "neg" and not set(chips) & set(negation_chips()):
            message = f"negation is known to {' and '.join(negation_chips())} only"
            found.append(_at(name, "modifier", message))
    return tuple(name.text for name in names)


def _index_fills(a: Operand) -> bool:
    """Whether the places of a sparse A leave no room for another set of them."""
    return a.sparse and 2 * a.layout.elements_per_lane * INDEX.bits > REGISTER_BITS


def repeated(names: Iterable[Name], what: str) -> Found:
    """A mistake for each name that is given again; `what` is its code."""
    seen: set[str] = set()
    found = []
    for name in names:
        if name.text in seen:
            found.append(_at(name, what, f"{what} `{name.text}` is given twice"))
        seen.add(name.text)
    return found


def _at(name: Name, code: str, message: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, name.span, hint)
