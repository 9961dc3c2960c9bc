"""Operands as LLVM spells them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.operand import AssemblySymbol, Literal, Register, parse_operand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v7", Register("v", 7, 1)),
        ("s[4:7]", Register("s", 4, 4)),
        ("a[12:15]", Register("a", 12, 4)),
        ("v[3]", Register("v", 3, 1)),
        ("vcc", Register("s", 106, 2)),
        ("exec_hi", Register("s", 127, 1)),
        ("m0", Register("s", 124, 1)),
        ("-v1", Register("v", 1, 1, negate=True)),
        ("|v2|", Register("v", 2, 1, absolute=True)),
        ("-|v2|", Register("v", 2, 1, negate=True, absolute=True)),
        ("off", AssemblySymbol("off")),
        (".LBB0_1", AssemblySymbol(".LBB0_1")),
    ],
)
def test_spellings(text: str, expected: object) -> None:
    assert parse_operand(text) == expected


@pytest.mark.parametrize("text", ["v[", "v1 2", "?", "s[1:"])
def test_what_is_no_operand(text: str) -> None:
    with pytest.raises(EmulationError, match="cannot read the operand"):
        parse_operand(text)


@pytest.mark.parametrize("text", ["s102", "s[100:103]"])
def test_scalar_registers_end_where_those_with_names_begin(text: str) -> None:
    with pytest.raises(EmulationError, match=r"there is no .*: the last scalar register is s101"):
        parse_operand(text)
    assert parse_operand("s101") == Register("s", 101, 1)


@pytest.mark.parametrize(("value", "inline"), [(-17, False), (-16, True), (64, True), (65, False)])
def test_inline_integers_end_at_64(value: int, inline: bool) -> None:
    """CDNA3 ISA, section 5.2: codes 128 to 208 are 0 to 64 and -1 to -16."""
    literal = Literal(str(value))
    assert literal.is_inline == inline
    assert literal.bits(64, floating=True) == (value % 2**64 if inline else value % 2**32 << 32)


@given(
    st.integers(-(2**31), 2**32 - 1) | st.integers(2**32 - 2**15, 2**32 - 1),
    st.sampled_from([16, 32]),
)
def test_an_integer_fits_or_is_refused(value: int, width: int) -> None:
    """All 32 bits of a negative one are how LLVM stores a literal of 16."""
    stored = width == 16 and value >= 2**32 - 2**15
    for text in (str(value), hex(value)):
        if stored or -(2 ** (width - 1)) <= value < 2**width:
            assert Literal(text).bits(width, floating=False) == value % 2**width
        else:
            with pytest.raises(ValueError, match="has more than"):
                Literal(text).bits(width, floating=False)


@given(st.integers(-(2**31), 2**32 - 1))
def test_a_literal_of_64_bits_has_32(value: int) -> None:
    """Such as LLVM prints; it is the high word of a float."""
    if -16 <= value <= 64:
        expected = [value % 2**64] * 3
    else:
        word = value % 2**32
        signed = word if word < 2**31 else word - 2**32
        expected = [word << 32, signed % 2**64, word]
    literal = Literal(str(value))
    found = [literal.bits(64, True), literal.bits(64, False, True), literal.bits(64, False)]
    assert found == expected


@pytest.mark.parametrize("value", [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532])
def test_an_inline_constant_has_the_width_of_its_use(value: float) -> None:
    assert Literal(str(value)).bits(16, True) == struct.unpack("<H", struct.pack("<e", value))[0]
    assert Literal(str(value)).bits(32, True) == struct.unpack("<I", struct.pack("<f", value))[0]
    for floating in (True, False):
        found = Literal(str(value)).bits(64, floating)
        assert found == struct.unpack("<Q", struct.pack("<d", value))[0]


@pytest.mark.parametrize("value", [0.1, -0.1, 3.0, 1e300, 0.15])
def test_another_float_of_64_bits_has_its_high_word(value: float) -> None:
    """A literal has 32 bits (CDNA3 ISA, section 5.2)."""
    exact = struct.unpack("<Q", struct.pack("<d", value))[0]
    assert Literal(repr(value)).bits(64, True) == exact >> 32 << 32


def test_modifiers_of_constants() -> None:
    assert parse_operand("neg(1)") == Literal("1", negate=True)
    assert parse_operand("|-1.0|") == Literal("-1.0", absolute=True)
    assert parse_operand("-|2.0|") == Literal("2.0", negate=True, absolute=True)
    assert parse_operand("|-1.0|").bits(32, True) == 0x3F800000  # type: ignore[union-attr]
    assert parse_operand("-|2.0|").bits(32, True) == 0xC0000000  # type: ignore[union-attr]


def test_all_64_bits_of_a_negative_constant_are_that_constant_of_a_double() -> None:
    """LLVM's assembler takes them; of a literal it would cut the low half."""
    assert Literal("0xfffffffffffffff0").bits(64, floating=True) == 2**64 - 16
    with pytest.raises(ValueError, match="has more than 32 bits"):
        Literal("0xffffffff80000000").bits(64, floating=True)
