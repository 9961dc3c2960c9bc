"""Syntax tree to model: every rule that is not a matter of grammar."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Mapping

from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Span, did_you_mean
from mfmadsl.language.expression import names_in
from mfmadsl.language.placement import place
from mfmadsl.language.syntax import (
    AliasField,
    CallField,
    Field,
    IntrinsicItem,
    LayoutItem,
    Name,
    OperandField,
    SettingsField,
)
from mfmadsl.model import (
    ARCHITECTURES,
    ELEMENT_TYPES,
    REGISTER_BITS,
    ElementType,
    Intrinsic,
    Operand,
)

_DIMENSIONS = ("m", "n", "k")
_LARGEST_DIMENSION = 128
_INDICES = {"a": ("i", "k"), "b": ("k", "j"), "c": ("i", "j")}
_EXTENT_OF = {"i": "m", "j": "n", "k": "k"}
_REQUIRED = ("shape", "a", "b", "c", "call", "cycles")

# A generated module lies on the user's import path: it must not hide somebody else's.
_FOREIGN_MODULES = {"tvm", "tvm_ffi", "numpy", "mfmadsl", *sys.stdlib_module_names}

_ISA_NAME = re.compile(
    r"v?_?mfma_(?P<c>[a-z0-9]+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?P<a>[a-z]+\d+)"
)
_LLVM_INTRINSIC = re.compile(r"llvm\.amdgcn(\.[a-z0-9]+)+")
_LLVM_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")


def check_layout(item: LayoutItem) -> list[Diagnostic]:
    """What is wrong with a layout's definition, whoever uses it."""
    found: list[Diagnostic] = []
    parameters = [p.text for p in item.parameters]
    for parameter in item.parameters:
        if parameter.text != parameter.text.lower():
            hint = f"a parameter is lower case: `{parameter.text.upper()}` is its extent"
            found.append(_at(parameter, "parameter", f"`{parameter.text}` has capitals", hint))
    found += _repeated(item.parameters, "parameter")
    found += _repeated([rule.name for rule in item.rules], "rule")
    known = {*parameters, *(p.upper() for p in parameters)}
    for rule in item.rules:
        if rule.name.text not in ("lane", "register"):
            hint = did_you_mean(rule.name.text, ["lane", "register"])
            found.append(_at(rule.name, "rule", f"a layout has no `{rule.name.text}`", hint))
        for name in names_in(rule.expression):
            if name.text not in known:
                message = f"`{name.text}` is no parameter of `{item.name.text}`"
                found.append(
                    _at(name, "unknown-name", message, did_you_mean(name.text, parameters))
                )
    for required in ("lane", "register"):
        if required not in [rule.name.text for rule in item.rules]:
            message = f"layout `{item.name.text}` does not say the `{required}`"
            found.append(_at(item.name, "rule", message, f"add `{required} = ...`"))
    return found


def check_intrinsic(item: IntrinsicItem, layouts: Mapping[str, LayoutItem]) -> Intrinsic:
    """The model of one instruction.

    Raises LanguageError with all that is wrong with it, in the order of the text.
    """
    found = _check_name(item.name)
    found += _repeated([field.name for field in item.fields], "field")
    fields = {field.name.text: field for field in item.fields}
    for required in _REQUIRED:
        if required not in fields:
            message = f"intrinsic `{item.name.text}` has no `{required}`"
            found.append(_at(item.name, "field", message, f"add a line `{required} ...`"))
    shape = _shape(fields.get("shape"), item, found)
    cycles = _cycles(fields.get("cycles"), found)
    call = _call(fields.get("call"), found)
    operands = {
        name: _operand(field, shape, layouts, found)
        for name, field in fields.items()
        if isinstance(field, OperandField)
    }
    aliases = fields.get("alias")
    names = aliases.aliases if isinstance(aliases, AliasField) else ()
    found += _repeated(names, "alias")
    a, b, c = (operands.get(name) for name in _INDICES)
    if a and b and c:
        found += _check_types(fields, a, b, c)
    if shape:
        found += _check_agreement(item, fields, names, shape)
    if found or not (shape and a and b and c):
        raise LanguageError(sorted(found, key=lambda d: d.span.start))
    return Intrinsic(
        name=item.name.text,
        doc=item.doc,
        **shape,
        a=a,
        b=b,
        c=c,
        call=call,
        cycles=cycles,
        aliases=tuple(name.text for name in names),
    )


def _check_name(name: Name) -> list[Diagnostic]:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name.text):
        hint = f"write `{name.text.lower().strip('_')}`"
        return [_at(name, "name", "an intrinsic's name is in lower case", hint)]
    taken = "a word of Python" if keyword.iskeyword(name.text) else "the name of another module"
    if keyword.iskeyword(name.text) or name.text in _FOREIGN_MODULES:
        message = f"`{name.text}` is {taken}: the generated module could not be imported"
        return [_at(name, "name", message, "use the instruction's name from the ISA manual")]
    return []


def _shape(
    field: Field | None, item: IntrinsicItem, found: list[Diagnostic]
) -> dict[str, int] | None:
    if not isinstance(field, SettingsField):
        return None
    found += _repeated([s.name for s in field.settings], "shape")
    shape: dict[str, int] = {}
    before = len(found)
    for setting in field.settings:
        name, value = setting.name, setting.value
        if name.text not in _DIMENSIONS:
            hint = did_you_mean(name.text, _DIMENSIONS)
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


def _cycles(field: Field | None, found: list[Diagnostic]) -> tuple[tuple[str, int], ...]:
    if not isinstance(field, SettingsField):
        return ()
    found += _repeated([s.name for s in field.settings], "chip")
    for setting in field.settings:
        chip, value = setting.name, setting.value
        if chip.text not in ARCHITECTURES:
            hint = did_you_mean(chip.text, list(ARCHITECTURES))
            found.append(_at(chip, "chip", f"`{chip.text}` is no chip with matrix cores", hint))
        if not value.value:
            found.append(Diagnostic("cycles", "an instruction takes a cycle or more", value.span))
    return tuple((s.name.text, s.value.value) for s in field.settings)


def _call(field: Field | None, found: list[Diagnostic]) -> str:
    if not isinstance(field, CallField):
        return ""
    if not _LLVM_INTRINSIC.fullmatch(field.text):
        hint = 'an intrinsic of the AMDGPU back end: "llvm.amdgcn.mfma.f32.16x16x16f16"'
        message = f'"{field.text}" is no LLVM intrinsic'
        found.append(Diagnostic("call", message, field.span, hint))
    return field.text


def _operand(
    field: OperandField,
    shape: Mapping[str, int] | None,
    layouts: Mapping[str, LayoutItem],
    found: list[Diagnostic],
) -> Operand | None:
    before = len(found)
    dtype = ELEMENT_TYPES.get(field.type.text)
    if dtype is None:
        hint = did_you_mean(field.type.text, list(ELEMENT_TYPES))
        found.append(_at(field.type, "type", f"`{field.type.text}` is no element type", hint))
    expected = _INDICES[field.name.text]
    written = tuple(index.text for index in field.indices)
    if written != expected:
        message = f"`{field.name.text}` is indexed [{', '.join(expected)}]"
        span = Span(field.span.source, field.indices[0].span.start, field.indices[1].span.end)
        hint = "C[i, j] += A[i, k] * B[k, j]"
        found.append(Diagnostic("indices", message, span, hint))
    if len(found) > before or dtype is None or shape is None:
        return None
    try:
        extents = {index: shape[_EXTENT_OF[index]] for index in expected}
        operand = Operand(field.name.text, dtype, place(field, extents, layouts))
    except LanguageError as error:
        found += error.diagnostics
        return None
    bits = operand.layout.registers * dtype.bits
    if bits % REGISTER_BITS:
        message = f"a lane holds {bits} bits of `{field.name.text}`, no whole number of registers"
        hint = f"{operand.layout.registers} x {dtype.bits} bits must be a multiple of 32"
        found.append(Diagnostic("registers", message, field.placement.span, hint))
    return operand


def _check_types(
    fields: Mapping[str, Field], a: Operand, b: Operand, c: Operand
) -> list[Diagnostic]:
    found = []
    for operand in (b, c):
        field = fields[operand.name]
        assert isinstance(field, OperandField)
        if operand.type.kind != a.type.kind:
            message = f"`a` holds {a.type.kind}s, but `{operand.name}` is {operand.type}"
            found.append(_at(field.type, "type", message))
        elif operand is b and b.type.bits != a.type.bits:
            message = f"`a` has elements of {a.type.bits} bits, `b` of {b.type.bits}"
            found.append(_at(field.type, "type", message))
        elif operand is c and c.type.bits < max(a.type.bits, REGISTER_BITS):
            message = f"{c.type} cannot accumulate products of {a.type}"
            found.append(_at(field.type, "type", message))
    return found


def _check_agreement(
    item: IntrinsicItem,
    fields: Mapping[str, Field],
    aliases: Iterable[Name],
    shape: Mapping[str, int],
) -> list[Diagnostic]:
    """Names that state a shape and types must state the ones of the entry."""
    found = []
    size = "x".join(str(shape[d]) for d in _DIMENSIONS)
    for name in (item.name, *aliases):
        stated = _ISA_NAME.fullmatch(name.text)
        if not stated:
            continue
        if "x".join(stated.group(*_DIMENSIONS)) != size:
            found.append(_at(name, "name", f"the name says another shape than {size}"))
        for operand in ("c", "a"):
            field = fields.get(operand)
            dtype = _type_of(field)
            if dtype is not None and stated[operand] != dtype.short:
                message = f"the name says `{operand}` is {stated[operand]}, the entry {dtype}"
                found.append(_at(name, "name", message))
    call = fields.get("call")
    if isinstance(call, CallField):
        stated = _LLVM_SHAPE.search(call.text)
        if stated and stated.group() != size:
            message = f"the LLVM intrinsic is for {stated.group()}, the entry for {size}"
            found.append(Diagnostic("call", message, call.span))
    return found


def _type_of(field: Field | None) -> ElementType | None:
    return ELEMENT_TYPES.get(field.type.text) if isinstance(field, OperandField) else None


def _repeated(names: Iterable[Name], what: str) -> list[Diagnostic]:
    seen: set[str] = set()
    found = []
    for name in names:
        if name.text in seen:
            found.append(_at(name, what, f"{what} `{name.text}` is given twice"))
        seen.add(name.text)
    return found


def _at(name: Name, code: str, message: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, name.span, hint)
