"""The operands of an entry: their indices, types and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Span
from mfmadsl.language.element import element_type, other_kind
from mfmadsl.language.placement import BLOCK, place
from mfmadsl.language.syntax import IntrinsicItem, LayoutItem, Name, OperandField
from mfmadsl.language.wave import Wave
from mfmadsl.model import (
    ELEMENT_TYPES,
    EXTENT_OF,
    INDICES,
    REGISTER_BITS,
    ElementType,
    Layout,
    Operand,
)

Found = list[Diagnostic]

_SPARSITY = 2  # of `[i, k / 2]`: A stores half of its elements
_SCALE = "float8_e8m0fnu"
_OF_CPUS = "uint8"


def check_operand(
    field: OperandField,
    shape: Mapping[str, int] | None,
    layouts: Mapping[str, LayoutItem],
    wave: Wave,
    found: Found,
) -> list[Operand]:
    """The operand that a field describes, once for each of its types; none if it is wrong."""
    before = len(found)
    types = [t for t in (_type(name, field, found) for name in field.types) if t is not None]
    _check_indices(field, shape, found)
    if len(found) > before or shape is None:
        return []
    extents = {i.name.text: shape[EXTENT_OF[i.name.text]] // i.group for i in field.indices}
    try:
        layout = place(field, {**extents, BLOCK: shape["blocks"]}, layouts, wave)
    except LanguageError as error:
        found += error.diagnostics
        return []
    name = field.name.text
    for dtype in types:
        found += whole_registers(field, layout, dtype)
    sparse = name == "a" and any(index.group > 1 for index in field.indices)
    return [Operand(name, dtype, layout, sparse) for dtype in types]


def whole_registers(field: OperandField, layout: Layout, dtype: ElementType) -> Found:
    """A mistake where what a lane holds is no whole number of registers; a scale is a byte."""
    bits = layout.elements_per_lane * dtype.bits
    if bits % REGISTER_BITS == 0 or dtype.name == _SCALE:
        return []
    message = f"a lane holds {bits} bits of `{field.name.text}`, no whole number of registers"
    hint = f"{layout.elements_per_lane} x {dtype.bits} bits must be a multiple of 32"
    return [Diagnostic("registers", message, field.placement.span, hint)]


def _type(name: Name, field: OperandField, found: Found) -> ElementType | None:
    dtype = element_type(name, found)
    if dtype is not None and (dtype.name == _SCALE) != field.name.text.startswith("scale"):
        message = f"`{field.name.text}` cannot be {dtype}"
        hint = f"`{_SCALE}` is the type of scales, and of nothing else"
        found.append(Diagnostic("type", message, name.span, hint))
    if dtype is not None and dtype.name == _OF_CPUS:
        message = f"`{field.name.text}` cannot be {dtype}: no matrix core reads it"
        found.append(Diagnostic("type", message, name.span, "micro-kernels of CPUs may"))
    return dtype


def _check_indices(field: OperandField, shape: Mapping[str, int] | None, found: Found) -> None:
    expected = INDICES[field.name.text]
    first, second = field.indices
    span = Span(field.span.source, first.span.start, second.span.end)
    if (first.name.text, second.name.text) != expected:
        message = f"`{field.name.text}` is indexed [{', '.join(expected)}]"
        found.append(Diagnostic("indices", message, span, "C[i, j] += A[i, k] * B[k, j]"))
        return
    for index in field.indices:
        if index.group == 1:
            continue
        extent = shape[EXTENT_OF[index.name.text]] if shape else 0
        scale = field.name.text.startswith("scale")
        if index.name.text != "k" or not (scale or field.name.text == "a"):
            message = f"`{field.name.text}` has a value for each `{index.name.text}`"
        elif not scale and index.group != _SPARSITY:
            message = f"a sparse `a` stores half of its elements: `k / {_SPARSITY}`"
        elif not index.group or extent % index.group:
            message = f"k={extent} is no multiple of {index.group}"
        else:
            continue
        found.append(Diagnostic("indices", message, index.span))


def check_types(
    item: IntrinsicItem, operands: Mapping[str, Sequence[Operand]], chips: Sequence[str]
) -> Found:
    """Whether the types can be multiplied and accumulated, by these chips."""
    found: Found = []
    fields = [field for field in item.fields if isinstance(field, OperandField)]
    types = {name: [o.type for o in given] for name, given in operands.items()}
    for field in fields:
        for name in field.types:
            dtype = ELEMENT_TYPES.get(name.text)
            if dtype is None:
                continue
            found += _check_chips(name, dtype, chips)
            problem = _mismatch(field.name.text, dtype, types)
            if problem:
                found.append(Diagnostic("type", problem, name.span))
    return found


def _mismatch(operand: str, dtype: ElementType, types: Mapping[str, Sequence[ElementType]]) -> str:
    a = types.get("a", ())
    if operand in ("b", "c") and (problem := other_kind(operand, dtype, a)):
        return problem
    if operand == "b" and len(a) == 1 and len(types.get("b", ())) == 1 and a[0].bits != dtype.bits:
        return f"`a` has elements of {a[0].bits} bits, `b` of {dtype.bits}"
    if operand == "c" and any(dtype.bits < max(t.bits, REGISTER_BITS) for t in a):
        return f"{dtype} cannot accumulate products of {a[0]}"
    return ""


def _check_chips(name: Name, dtype: ElementType, chips: Sequence[str]) -> Found:
    """A chip reads eight bits as its own kind of fp8."""
    foreign = [chip for chip in chips if dtype.chips and chip not in dtype.chips]
    if not foreign:
        return []
    theirs = [
        t.name for t in ELEMENT_TYPES.values() if t.short == dtype.short and foreign[0] in t.chips
    ]
    message = f"{foreign[0]} does not read {dtype}"
    hint = f"its {dtype.short} is `{theirs[0]}`" if theirs else f"{' '.join(dtype.chips)} does"
    return [Diagnostic("type", message, name.span, hint)]
