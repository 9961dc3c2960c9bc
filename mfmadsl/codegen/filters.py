"""What the templates write in Python, TVMScript and C: text that says types, indices and names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mfmadsl.codegen.lines import call, filled, function, packed_list, returned
from mfmadsl.model import ClosedForm, ElementType, Intrinsic, Operand, TileBuffer, numbered_up
from mfmadsl.model.signature import register_type

# Controls, line separators, surrogates, and what reverses the direction of writing.
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_C_TYPES = {"float64": "double", "float32": "float", "int8": "signed char", "int32": "int"}

_TIR_ELEMENTS = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "i16": "int16",
    "bfloat": "int16",  # TIR has no vector of bfloat
    "i32": "int32",
    "i64": "int64",
}


def c_type(dtype: ElementType) -> str:
    """As the C function sees it; of what C has no type, its bits."""
    return _C_TYPES.get(dtype.dtype, f"unsigned {'short' if dtype.bits == 16 else 'char'}")


def indexed(operand: TileBuffer) -> str:
    """A tile's buffer with the indices of its elements, such as `A[i, k]`."""
    return f"{operand.name.upper()}[{', '.join(operand.indices)}]"


def cast(expression: str, source: ElementType, target: ElementType) -> str:
    """An expression of TVMScript in another type; as it is where that is its own."""
    same = source.dtype == target.dtype
    return expression if same else f'T.Cast("{target.dtype}", {expression})'


def docstring(text: str) -> str:
    """Text that stays text inside a triple-quoted string, and looks like what it is."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def quoted(text: str) -> str:
    """A Python string, whatever the text holds."""
    return '"' + docstring(text) + '"'


def python_tuple(texts: tuple[str, ...]) -> str:
    """A Python tuple of strings."""
    return "(" + ", ".join(quoted(t) for t in texts) + ("," if len(texts) == 1 else "") + ")"


def python_dict(pairs: tuple[tuple[str, int], ...]) -> str:
    """A Python dictionary of numbers."""
    return "{" + ", ".join(f"{quoted(key)}: {value}" for key, value in pairs) + "}"


def expression(form: ClosedForm) -> str:
    """An index as TVM takes it: a constant must be one of its integers already."""
    return str(form) if form.digits else f"T.int32({form})"


def elements(operand: Operand, instruction: str = "") -> str:
    """The index of what one lane gives to an instruction: a scalar is no vector of one to LLVM.

    `instruction` is the variable that numbers the instructions of a tile of several.
    """
    count = operand.layout.elements_per_lane
    if count == 1:
        return instruction or "0"
    return f"T.ramp({f'{instruction} * {count}' if instruction else 0}, 1, {count})"


def vector_dtype(operand: Operand) -> str:
    """TVM's type of what a lane holds of an operand: `float16x4`."""
    count = operand.layout.elements_per_lane
    return f"{operand.type.dtype}x{count}" if count > 1 else operand.type.dtype


def llvm_argument(operand: Operand, intrinsic: Intrinsic, instruction: str = "") -> str:
    """A lane's elements in the type that the LLVM intrinsic wants."""
    held = f"{operand.name.upper()}[lane, {elements(operand, instruction)}]"
    wanted = register_type(intrinsic, operand)
    dtype = _TIR_ELEMENTS[wanted.element] + (f"x{wanted.length}" if wanted.length > 1 else "")
    return held if dtype == vector_dtype(operand) else f'T.reinterpret("{dtype}", {held})'


def whole(operand: Operand) -> str:
    """The region of all that a wave holds of it."""
    layout = operand.layout
    return f"{operand.name.upper()}[0:{layout.lanes}, 0:{layout.elements_per_lane}]"


def suffixed(text: str, suffix: str) -> str:
    """Text with a suffix, for `map` in templates."""
    return text + suffix


FILTERS: dict[str, Callable[..., Any]] = {
    filter_.__name__: filter_
    for filter_ in (
        c_type, call, cast, docstring, elements, expression, filled, function, indexed,
        llvm_argument, numbered_up, packed_list, python_dict, python_tuple, quoted, returned,
        suffixed, vector_dtype, whole,
    )
}  # fmt: skip
"""Those of the templates, by name."""
