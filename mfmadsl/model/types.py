"""The element types that matrix instructions take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ElementType:
    """A number format as it lies in a register.

    `name` is TVM's name for the dtype, `short` the one in instruction names.
    """

    name: str
    short: str
    bits: int
    kind: Literal["float", "integer"]

    def __str__(self) -> str:
        return self.name


FLOAT16 = ElementType("float16", "f16", 16, "float")
FLOAT32 = ElementType("float32", "f32", 32, "float")
INT8 = ElementType("int8", "i8", 8, "integer")
INT32 = ElementType("int32", "i32", 32, "integer")

ELEMENT_TYPES: dict[str, ElementType] = {t.name: t for t in (FLOAT16, FLOAT32, INT8, INT32)}
