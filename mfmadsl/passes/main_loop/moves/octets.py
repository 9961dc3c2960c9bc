"""Fields of bytes that were loaded as words, taken from the whole word.

What is made of a word can be had for all of its bytes at once, where LLVM sees that it is the same.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm.tirx import Expr

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import constant, i32, name_of
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.passes.types.small_floats import ELEMENT

_OF_WORDS = f"soft.{ELEMENT}."
"""Device functions of a word and a shift that compute what they need of all bytes of the word."""

_FIELD = 4  # bits
OCTET_BITS = 8
"""The bits of a byte."""


def of_whole_words(value: Expr) -> Expr:
    """The value with elements of bytes of fetched words made elements of the words."""

    def taken(call: Call) -> Expr:
        name = device.device_function(call)
        if not name.startswith(_OF_WORDS):
            return call
        octet, shift = byte_of(call.args[1]), constant(Analyzer().simplify(call.args[2]))
        if octet is None or shift is None or not 0 <= shift <= OCTET_BITS - _FIELD:
            return call
        word, start = octet
        return device.device(str(call.ty.dtype), name, word, i32(start + shift))

    return mapped(value, (Call, taken))


def byte_of(value: Expr) -> tuple[Expr, int] | None:
    """(word, first bit) of an integer that is a byte of a word, without a sign; None of others."""
    if not isinstance(value, tirx.Cast) or str(value.ty.dtype) != "int32":
        return None
    octet = value.value
    if str(octet.ty.dtype) != "uint8":
        return None
    while isinstance(octet, Call) and name_of(octet) == "reinterpret":
        octet = octet.args[0]
    if not isinstance(octet, tirx.Cast) or str(octet.ty.dtype) != "uint8":
        return None
    moved, start = octet.value, 0
    if isinstance(moved, tirx.RShift):
        known = constant(moved.b)
        if known is None:
            return None
        moved, start = moved.a, known
    is_word = str(moved.ty.dtype) == "int32" and 0 <= start <= 32 - OCTET_BITS
    return (moved, start) if is_word else None
