"""Element types by name, and which go together: of operands and of tiles in memory."""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.syntax import Name
from mfmadsl.model import ELEMENT_TYPES, ElementType
from mfmadsl.nearest import did_you_mean


def element_type(name: Name, found: list[Diagnostic]) -> ElementType | None:
    """The type that is called so; None, and told, if there is none."""
    dtype = ELEMENT_TYPES.get(name.text)
    if dtype is None:
        hint = did_you_mean(name.text, list(ELEMENT_TYPES))
        found.append(Diagnostic("type", f"`{name.text}` is no element type", name.span, hint))
    return dtype


def other_kind(operand: str, dtype: ElementType, a: Sequence[ElementType]) -> str:
    """Why an operand of a type cannot be multiplied with, or hold products of, types of A."""
    if any(t.kind != dtype.kind for t in a):
        return f"`a` holds {a[0].kind}s, but `{operand}` is {dtype}"
    return ""
