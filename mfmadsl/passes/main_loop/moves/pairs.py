"""Neighbours of a store computed two at a time, as words: floats that are rounded, and halves that
are fields of two words.

Where neighbours are in words of their own, such as weights of which a word has several rows, their
halves of both words are put together first: then one mask makes two numbers of fields of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm.tirx import Expr

from mfmadsl.passes.main_loop.moves.octets import OCTET_BITS, byte_of
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import constant, i32, name_of
from mfmadsl.passes.types.small_floats import ELEMENT
from mfmadsl.passes.types.small_integers import OCTET

_IN_PAIRS = (
    "bits.bfloat16", "soft.bits.bfloat16", "soft.bits.bfloat16.of_product",
    "soft.bits.bfloat16.of_exact", "soft.bits.bfloat16.of_factors",
)  # fmt: skip
"""Device functions of a float, which give bits of a half: there are others, of two at once."""

_Packed: TypeAlias = tirx.Add | tirx.Sub | tirx.Mul
"""What one instruction computes two of."""

_ELEMENT = f"soft.{ELEMENT}.float16"
_BOTH_ELEMENTS = "soft.pair.float4_e2m1fn"
_WORDS = {"int32", "uint32"}
_HALF = 16  # bits
_LOW_HALVES = 0x05040100  # for `v_perm_b32`, of two words
_NEXT_HALF = 0x01010101  # for each byte that the halves begin higher up
_WORD_OCTETS = 4
_NO_OCTETS = 0x0C000C00  # for `v_perm_b32`: zeros above each of two bytes


def in_pairs(values: Sequence[Expr], alone: bool = False) -> list[Expr]:
    """The words of values that are computed two at once; nothing where others, or all of them
    alone, do not profit. Where each word stands `alone`, LLVM does not see more than two numbers
    of a kind, and leaves them as they are."""
    if len(values) % 2:
        return []
    return _rounded(values) or _halves(values, alone)


def _rounded(values: Sequence[Expr]) -> list[Expr]:
    """The words of rounded floats, two of which are rounded at once; nothing of other values."""
    rounded = [call for value in values for call in [_rounding(value)] if call is not None]
    if len(rounded) < len(values):
        return []
    found = []
    for low, high in zip(rounded[::2], rounded[1::2], strict=True):
        both = (_both(*each) for each in zip(low.args[1:], high.args[1:], strict=True))
        found.append(device.device("int32", f"pair.{device.device_function(low)}", *both))
    return found


def _rounding(value: Expr) -> Call | None:
    """The call whose lower half a value is, of a function that there is for two."""
    if not isinstance(value, tirx.Cast) or str(value.ty.dtype) != "uint16":
        return None
    call = value.value
    return call if isinstance(call, Call) and device.device_function(call) in _IN_PAIRS else None


def _both(low: Expr, high: Expr) -> Expr:
    """Two numbers as a vector, so that one instruction computes both where the chip has it."""
    if tvm_ffi.structural_equal(low, high):
        return tirx.Broadcast(low, 2)
    if isinstance(low, _Packed) and isinstance(high, _Packed) and type(low) is type(high):
        first, second = _both(low.a, high.a), _both(low.b, high.b)
        if isinstance(first, tirx.Shuffle) and isinstance(second, tirx.Shuffle):
            first = _kept(first)
        return type(low)(first, second)
    for known in (_fields_of, _octets_of, _opposites_of):
        if (vector := known(low, high)) is not None:
            return vector
    halves: Expr = tirx.Shuffle([low, high], [0, 1])
    return halves


def _kept(both: Expr) -> Expr:
    """Two floats that LLVM does not take for two again, as it does where all operands are such."""
    is_floats = str(both.ty.dtype) == "float32x2"
    return device.device("float32x2", "pair.kept", both) if is_floats else both


def _halves(values: Sequence[Expr], alone: bool) -> list[Expr]:
    """The words of halves of which each two are fields or bytes of words, or computed of such, or
    `alone` any sums and products; nothing of other values."""
    pairs = list(zip(values[::2], values[1::2], strict=True))
    if not all(_has_fields(*pair) for pair in pairs) and not (alone and _are_packed(values)):
        return []
    return [tirx.reinterpret("int32", _both(*pair)) for pair in pairs]


def _are_packed(values: Sequence[Expr]) -> bool:
    """Whether all are halves that one instruction computes two of."""
    return all(isinstance(each, _Packed) and str(each.ty.dtype) == "float16" for each in values)


def _has_fields(low: Expr, high: Expr) -> bool:
    """Whether some of what two halves are computed of are fields of two words."""
    if isinstance(low, _Packed) and isinstance(high, _Packed) and type(low) is type(high):
        return _has_fields(low.a, high.a) or _has_fields(low.b, high.b)
    return _fields_of(low, high) is not None or _octets_of(low, high) is not None


def _fields_of(low: Expr, high: Expr) -> Expr | None:
    """The vector of two halves that are fields of two words, at the same place, or the elements of
    a byte; None of others."""
    if (elements := _elements_of(low, high)) is not None:
        return elements
    one, other = _field(low), _field(high)
    if one is None or other is None:
        return None
    if one.is_low_half_of(other):
        halves = one.word
    elif one.place == other.place:
        selector = i32(_LOW_HALVES) + (one.above >> i32(3)) * i32(_NEXT_HALF)
        halves = device.permute(other.word, one.word, Analyzer().simplify(selector))
    else:
        return None
    moved = tirx.shift_right(halves.astype("uint32"), one.down.astype("uint32"))
    bits = device.masked(moved.astype("int32"), one.mask, one.bits)
    return tirx.reinterpret("float16x2", bits)


def _elements_of(low: Expr, high: Expr) -> Expr | None:
    """The vector of the two elements of four bits of a byte of a word; None of other numbers."""
    if not isinstance(low, Call) or not isinstance(high, Call):
        return None
    if not device.device_function(low) == device.device_function(high) == _ELEMENT:
        return None
    (_, word, first), (_, other, second) = low.args, high.args
    shifts = constant(first), constant(second)
    if None in shifts or not tvm_ffi.structural_equal(word, other):
        return None
    start, end = (int(each) for each in shifts if each is not None)
    if start % 8 or end != start + 4:
        return None
    return device.device("float16x2", _BOTH_ELEMENTS, word, first)


def _octets_of(low: Expr, high: Expr) -> Expr | None:
    """The vector of two halves that are bytes of words; None of others."""
    if not isinstance(low, Call) or not isinstance(high, Call):
        return None
    if not device.device_function(low) == device.device_function(high) == OCTET:
        return None
    one, other = byte_of(low.args[1]), byte_of(high.args[1])
    turned = constant(low.args[2])
    if one is None or other is None or turned is None or turned != constant(high.args[2]):
        return None
    (word, first), (above, second) = one, other
    places = first // OCTET_BITS | (second // OCTET_BITS + _WORD_OCTETS) << _HALF | _NO_OCTETS
    bits = device.permute(above, word, places) ^ i32(turned | turned << _HALF)
    return tirx.reinterpret("float16x2", bits)


def _opposites_of(low: Expr, high: Expr) -> Expr | None:
    """The vector of two numbers with their signs turned around; None of others."""
    if not isinstance(low, Call) or not isinstance(high, Call):
        return None
    if not device.device_function(low) == device.device_function(high) == "opposite":
        return None
    return device.device("float16x2", "pair.opposite", _both(low.args[1], high.args[1]))


@dataclass(frozen=True)
class _Field:
    """The bits of a half: what `masked` makes of a word moved `down`, of its lower half where
    `above` is 0, and of its upper one where that is 16."""

    word: Expr
    down: Expr
    above: Expr
    mask: int
    bits: int

    @property
    def place(self) -> tuple[tvm_ffi.StructuralKey | int, ...]:
        """All but the word."""
        return *map(tvm_ffi.StructuralKey, (self.down, self.above)), self.mask, self.bits

    def is_low_half_of(self, other: _Field) -> bool:
        """Whether another one is the same of the upper half of the word."""
        lower = constant(self.above) == 0 and constant(other.above) == _HALF
        place = replace(self, above=other.above).place
        return lower and place == other.place and tvm_ffi.structural_equal(self.word, other.word)


def _field(value: Expr) -> _Field | None:
    """What `passes.types.small_integers` makes of a field that lies within half of a word."""
    if not isinstance(value, Call) or name_of(value) != "reinterpret":
        return None
    cast = value.args[0]
    if str(value.ty.dtype) != "float16" or not isinstance(cast, tirx.Cast):
        return None
    moved = _word(cast.value)
    if not isinstance(moved, tirx.RShift):
        return None
    call = _word(moved.a)
    if not isinstance(call, Call) or device.device_function(call) != "masked":
        return None
    inner, mask, bits = _word(call.args[1]), constant(call.args[2]), constant(call.args[3])
    if not isinstance(inner, tirx.RShift) or mask is None or bits is None:
        return None
    down, above = (Analyzer().simplify(_word(each)) for each in (inner.b, moved.b))
    if not _is_within(down, mask) or not _is_half(above):
        return None
    return _Field(_word(inner.a).astype("int32"), down, above, mask, bits)


def _word(value: Expr) -> Expr:
    """An integer of 32 bits, with a sign or without."""
    while (
        isinstance(value, tirx.Cast)
        and {str(each.ty.dtype) for each in (value, value.value)} <= _WORDS
    ):
        value = value.value
    return value


def _is_within(down: Expr, mask: int) -> bool:
    """Whether what is moved down so far stays in its half of the word as far as the mask has it."""
    bound, low = Analyzer().const_int_bound(down), mask & (1 << _HALF) - 1
    is_same = mask >> _HALF == low
    return is_same and bound.min_value >= 0 and bound.max_value + low.bit_length() <= _HALF


def _is_half(above: Expr) -> bool:
    """Whether it is 0 or 16."""
    bound, steps = Analyzer().const_int_bound(above), Analyzer().modular_set(above)
    is_whole = steps.coeff % _HALF == 0 and steps.base % _HALF == 0
    return is_whole and bound.min_value >= 0 and bound.max_value <= _HALF
