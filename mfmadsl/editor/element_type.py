"""What an element type of the language means."""

from __future__ import annotations

from collections.abc import Mapping

from mfmadsl.model import ELEMENT_TYPES, ElementType

_MEANS: Mapping[str, str] = {
    "float64": "IEEE binary64: a sign, 11 bits of exponent, 52 of fraction",
    "float32": "IEEE binary32: a sign, 8 bits of exponent, 23 of fraction",
    "xfloat32": "float32 in memory, of which the matrix core uses 19 bits: a sign, 8 bits of "
    "exponent, 10 of fraction",
    "float16": "IEEE binary16: a sign, 5 bits of exponent, 10 of fraction",
    "bfloat16": "the upper half of a float32: a sign, 8 bits of exponent, 7 of fraction",
    "float8_e4m3fnuz": "a sign, 4 bits of exponent, 3 of fraction; no infinity, no negative zero",
    "float8_e5m2fnuz": "a sign, 5 bits of exponent, 2 of fraction; no infinity, no negative zero",
    "float8_e4m3fn": "OCP: a sign, 4 bits of exponent, 3 of fraction; no infinity",
    "float8_e5m2": "OCP: a sign, 5 bits of exponent, 2 of fraction",
    "float6_e2m3fn": "OCP MX: a sign, 2 bits of exponent, 3 of fraction; no infinity, no NaN",
    "float6_e3m2fn": "OCP MX: a sign, 3 bits of exponent, 2 of fraction; no infinity, no NaN",
    "float4_e2m1fn": "OCP MX: a sign, 2 bits of exponent, 1 of fraction; no infinity, no NaN",
    "float8_e8m0fnu": "OCP MX, a scale: 8 bits of exponent and nothing else, 2^-127 to 2^127 or "
    "NaN",
    "int8": "a signed byte",
    "uint8": "an unsigned byte, of micro-kernels, accelerators and fragments only",
    "int32": "a signed integer of 32 bits",
}


def type_summary(name: str) -> str | None:
    """Its bits, what they are, and which chips' matrix cores read it; None if there is none."""
    dtype = ELEMENT_TYPES.get(name)
    return None if dtype is None else f"{dtype.bits} bits, {_MEANS[name]}{_chips(dtype)}"


def _chips(dtype: ElementType) -> str:
    return f". Read by {', '.join(dtype.chips)}" if dtype.chips else ""
