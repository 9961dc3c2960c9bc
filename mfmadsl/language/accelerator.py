"""Rules for accelerators."""

from __future__ import annotations

import re

from mfmadsl.language.checker import check_fields, check_single_shape
from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Span
from mfmadsl.language.element import element_type, other_kind
from mfmadsl.language.syntax import AcceleratorItem, BufferField, CallField
from mfmadsl.model import ELEMENT_TYPES, Accelerator, TileBuffer

_INDICES = {"a": (("i", "k"), ("k", "i")), "b": (("k", "j"), ("j", "k")), "c": (("i", "j"),)}
_REQUIRED = ("shape", "a", "b", "c", "calls")
_SCOPE = re.compile(r"global(\.[A-Za-z_][A-Za-z0-9_]*)?")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_accelerator(item: AcceleratorItem) -> Accelerator:
    """The model of an accelerator. Raises LanguageError with all that is wrong with it."""
    found: list[Diagnostic] = []
    fields = check_fields("accelerator", item.name, item.fields, _REQUIRED, found)
    shape = check_single_shape("an accelerator", fields.get("shape"), found)
    buffers = {f.name.text: _buffer(f, found) for f in item.fields if isinstance(f, BufferField)}
    function = _function(fields.get("calls"), found)
    found += _mismatches(item, buffers)
    if found or shape is None:
        raise LanguageError(sorted(found, key=lambda d: d.span.start))
    a, b, c = (buffers[name] for name in "abc")
    return Accelerator(item.name.text, item.doc, **shape, a=a, b=b, c=c, function=function)


def _buffer(field: BufferField, found: list[Diagnostic]) -> TileBuffer:
    name = field.name.text
    dtype = element_type(field.type, found)
    first, second = field.indices
    indices = first.name.text, second.name.text
    if indices not in _INDICES.get(name, ()) or first.group * second.group > 1:
        span = Span(first.span.source, first.span.start, second.span.end)
        ways = " or ".join(f"[{', '.join(way)}]" for way in _INDICES.get(name, ()))
        message = f"`{name}` is indexed {ways}" if ways else f"an accelerator has no `{name}`"
        found.append(Diagnostic("indices", message, span, "C[i, j] += A[i, k] * B[k, j]"))
    if not _SCOPE.fullmatch(field.scope):
        message = f'"{field.scope}" is no memory scope'
        hint = 'a scope of memory that the host allocates: "global" or "global.name"'
        found.append(Diagnostic("scope", message, field.scope_span, hint))
    any_type = next(iter(ELEMENT_TYPES.values()))  # of what is wrong nothing is made
    return TileBuffer(name, dtype or any_type, indices, field.scope)


def _mismatches(item: AcceleratorItem, buffers: dict[str, TileBuffer]) -> list[Diagnostic]:
    """Types that no C array holds, or that cannot be multiplied and accumulated."""
    found = []
    for field in item.fields:
        if not isinstance(field, BufferField) or field.type.text not in ELEMENT_TYPES:
            continue
        dtype, a = ELEMENT_TYPES[field.type.text], [buffers["a"].type] if "a" in buffers else []
        if dtype.bits < 8:
            problem = f"{dtype} has {dtype.bits} bits: an array in memory holds whole bytes"
        else:
            problem = other_kind(field.name.text, dtype, a)
        if problem:
            found.append(Diagnostic("type", problem, field.type.span))
    return found


def _function(field: object, found: list[Diagnostic]) -> str:
    if not isinstance(field, CallField):
        return ""
    if not _FUNCTION.fullmatch(field.text):
        message = f'"{field.text}" is no name of a C function'
        found.append(Diagnostic("call", message, field.span))
    return field.text
