"""How LLVM's intrinsics want their operands: the same registers under many types.

Source: LLVM 22, IntrinsicsAMDGPU.td; `tests/data/llvm_matrix_intrinsics.json` has every signature.
"""

from __future__ import annotations

from typing import NamedTuple

from mfmadsl.model.intrinsic import Intrinsic, Operand

SCALED_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Number of a scaled operand's type in the intrinsic's format arguments."""


class RegisterType(NamedTuple):
    """`length` elements of LLVM's type `element`, a vector if there are several."""

    element: str
    length: int

    def __str__(self) -> str:
        return self.element if self.length == 1 else f"<{self.length} x {self.element}>"


_FLOATS = {"f64": "double", "f32": "float", "xf32": "float", "f16": "half"}


def register_type(intrinsic: Intrinsic, operand: Operand) -> RegisterType:
    """The type under which an operand's registers are passed."""
    short, words = operand.type.short, operand.register_count
    if short in _FLOATS:
        return RegisterType(_FLOATS[short], operand.layout.elements_per_lane)
    if short == "bf16":
        # The first intrinsics for bf16, of up to four elements of A, are older than LLVM's type.
        element = "bfloat" if intrinsic.a.layout.elements_per_lane > 4 else "i16"
        return RegisterType(element, operand.layout.elements_per_lane)
    if words == 2 and not intrinsic.sparse and operand is not intrinsic.c:
        return RegisterType("i64", 1)
    return RegisterType("i32", words)


def formats(intrinsic: Intrinsic) -> tuple[int, int]:
    """The numbers of the types of A and B, as a scaled instruction's call has them."""
    a, b = (SCALED_FORMATS.index(operand.type.short) for operand in (intrinsic.a, intrinsic.b))
    return a, b


def trailing(intrinsic: Intrinsic) -> tuple[str, ...]:
    """What a call takes after A, B and C: names of modifiers, formats, scales and the index.

    `format_a` and `format_b` number the types of a scaled instruction's operands, and `byte_a` and
    `byte_b` say which byte of `scale_a` and `scale_b` counts.
    """
    if intrinsic.scales:
        return "format_a", "format_b", "byte_a", "scale_a", "byte_b", "scale_b"
    return ("index", "cbsz", "abid") if intrinsic.sparse else ("cbsz", "abid", "blgp")


def overload(intrinsic: Intrinsic) -> str:
    """The name with the suffix of its types, where it is overloaded."""
    if not intrinsic.scales:
        return intrinsic.call
    words = (intrinsic.a.register_count, intrinsic.b.register_count)
    return intrinsic.call + "".join(f".v{count}i32" for count in words)
