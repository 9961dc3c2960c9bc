"""Elements of bytes of loaded words are those of the words; others stay as they are."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from tvm import tirx

from mfmadsl.passes.main_loop.moves.octets import of_whole_words
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import i32

WORD = tirx.Var("word", "int32")
NAME = "soft.element.float4_e2m1fn.float16"


def octet(start: Any, dtype: str = "uint8") -> Any:
    return tirx.Cast("int32", tirx.Cast(dtype, tirx.shift_right(WORD, start)))


def element(word: Any, shift: Any, name: str = NAME) -> Any:
    return device.device("float16", name, word, shift)


@pytest.mark.parametrize("start", [0, 8, 16, 24])
@pytest.mark.parametrize("shift", [0, 4])
def test_an_element_of_a_byte(start: int, shift: int) -> None:
    found = of_whole_words(element(octet(i32(start)), i32(shift)))
    assert tvm_ffi.structural_equal(found, element(WORD, i32(start + shift)))


def test_a_byte_that_was_taken_for_one_with_a_sign() -> None:
    """Its bits are those of the byte."""
    as_signed = tirx.reinterpret("int8", tirx.Cast("uint8", tirx.shift_right(WORD, i32(8))))
    octet = tirx.Cast("int32", tirx.reinterpret("uint8", as_signed))
    found = of_whole_words(element(octet, i32(4)))
    assert tvm_ffi.structural_equal(found, element(WORD, i32(12)))
    as_number = element(tirx.Cast("int32", as_signed), i32(4))  # its sign would be repeated
    assert tvm_ffi.structural_equal(of_whole_words(as_number), as_number)


@pytest.mark.parametrize(
    "value",
    [
        element(octet(i32(8), "int8"), i32(0)),  # its sign would be repeated
        element(octet(i32(28)), i32(0)),  # four bits of the word, and zeros
        element(octet(i32(8)), i32(8)),  # beyond the byte are zeros
        element(octet(i32(8)), tirx.Var("shift", "int32")),
        element(octet(tirx.Var("start", "int32")), i32(0)),
        element(octet(i32(8), "uint16"), i32(0)),
        element(octet(i32(8)), i32(0), "element.float4_e2m1fn.float16"),  # takes the byte itself
    ],
)
def test_what_stays_as_it_is(value: Any) -> None:
    assert tvm_ffi.structural_equal(of_whole_words(value), value)
