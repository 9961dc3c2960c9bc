"""The element types that matrix instructions take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mfmadsl.model.architecture import NumberFormat
from mfmadsl.model.chips import ARCHITECTURES


@dataclass(frozen=True)
class ElementType:
    """A number format as it lies in a register.

    `name` is what `.mfma` files call it: TVM's and ml_dtypes' name, where they have one. `short` is
    the one in instruction names. `format` is what a chip has to have among its formats for its
    matrix cores to read it, where not all do: the same eight bits are another number on gfx942
    (fnuz) than on gfx950 (OCP).
    """

    name: str
    short: str
    bits: int
    kind: Literal["float", "integer"]
    format: NumberFormat | None = None

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips whose matrix cores read it, where not all do; else none are named."""
        if self.format is None:
            return ()
        return tuple(a.name for a in ARCHITECTURES.values() if self.format in a.formats)

    @property
    def dtype(self) -> str:
        """TVM's dtype of an array of them: xf32 is float32 that the matrix core rounds."""
        return "float32" if self.name == "xfloat32" else self.name

    def __str__(self) -> str:
        return self.name


INDEX = ElementType("uint2", "index", 2, "integer", "index")
"""The position of a stored element among its four neighbours, in a sparse A."""

ELEMENT_TYPES: dict[str, ElementType] = {
    t.name: t
    for t in (
        ElementType("float64", "f64", 64, "float"),
        ElementType("float32", "f32", 32, "float"),
        ElementType("xfloat32", "xf32", 32, "float", "xf32"),
        ElementType("float16", "f16", 16, "float"),
        ElementType("bfloat16", "bf16", 16, "float"),
        ElementType("float8_e4m3fnuz", "fp8", 8, "float", "fnuz"),
        ElementType("float8_e5m2fnuz", "bf8", 8, "float", "fnuz"),
        ElementType("float8_e4m3fn", "fp8", 8, "float", "ocp"),
        ElementType("float8_e5m2", "bf8", 8, "float", "ocp"),
        ElementType("float6_e2m3fn", "fp6", 6, "float", "mx"),
        ElementType("float6_e3m2fn", "bf6", 6, "float", "mx"),
        ElementType("float4_e2m1fn", "fp4", 4, "float", "mx"),
        ElementType("float8_e8m0fnu", "e8m0", 8, "float", "mx"),
        ElementType("int8", "i8", 8, "integer"),
        ElementType("uint8", "u8", 8, "integer"),
        ElementType("int32", "i32", 32, "integer"),
    )
}

EIGHT_BIT_FLOATS = tuple(
    sorted(t.name for t in ELEMENT_TYPES.values() if t.short in ("fp8", "bf8"))
)
"""Those that some chip multiplies, by name."""
