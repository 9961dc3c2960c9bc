"""Vector instructions on integers and bits (CDNA3 ISA, chapter 12: VOP1, VOP2 and VOP3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mfmadsl.emulator.instructions.row import QUARTER_RATE, Row, row
from mfmadsl.emulator.machine.bits import Array, Compute, dtype_of, pair_of_words


def _shift(amount: Array, width: int) -> Array:
    return amount & np.asarray(width - 1, dtype=amount.dtype)


def multiply_high(wide: type, a: Array, b: Array) -> Array:
    """The upper 32 bits of a product."""
    return np.asarray(a.astype(wide) * b.astype(wide) >> wide(32)).astype(a.dtype)


def _unsigned_24(a: Array) -> Array:
    return a & 0xFFFFFF


def _signed_24(a: Array) -> Array:
    return a << 8 >> 8


def _align_bit(a: Array, b: Array, c: Array) -> Array:
    return np.asarray(pair_of_words(b, a) >> _shift(c, 32)).astype(np.uint32)


def _align_byte(a: Array, b: Array, c: Array) -> Array:
    return _align_bit(a, b, (c & 3) << 3)


def _extract_unsigned(a: Array, b: Array, c: Array) -> Array:
    width = _shift(c, 32)
    return (a >> _shift(b, 32)) & ((np.uint32(1) << width) - np.uint32(1))


def _extract_signed(a: Array, b: Array, c: Array) -> Array:
    """A field that reaches beyond bit 31 has copies of that bit there."""
    width = _shift(c, 32)
    shifted = (a >> _shift(b, 32).astype(np.int32)).view(np.uint32)
    field = shifted & ((np.uint32(1) << width) - np.uint32(1))
    sign = np.where(width == 0, 0, np.uint32(1) << (np.maximum(width, 1) - 1)).astype(np.uint32)
    return ((field ^ sign) - sign).view(np.int32)


def _permute(a: Array, b: Array, selector: Array) -> Array:
    """v_perm_b32: each byte of the selector picks one of the eight bytes of (a, b)."""
    choices = _same_bytes(selector)
    if max(choices, default=8) < 8:
        return _picked([b, a], choices)
    pair = pair_of_words(b, a)
    result = np.zeros(np.broadcast_shapes(pair.shape, selector.shape), dtype=np.uint32)
    for byte in range(4):
        choice = selector >> np.uint32(8 * byte) & np.uint32(0xFF)
        shift = (choice & 7).astype(np.uint64) << np.uint64(3)
        picked = np.asarray(pair >> shift).astype(np.uint32) & np.uint32(0xFF)
        if (choice >= 8).any():
            sign = 2 * np.clip(choice, 8, 11).astype(np.uint64) - 15  # byte 1, 3, 5 or 7
            filled = np.asarray(pair >> (sign * np.uint64(8) + np.uint64(7)) & np.uint64(1))
            filled = filled.astype(np.uint32) * np.uint32(0xFF)
            picked = np.where(choice < 8, picked, np.where(choice < 12, filled, 0))
            picked = np.where(choice > 12, np.uint32(0xFF), picked)
        result |= picked.astype(np.uint32) << np.uint32(8 * byte)
    return result


def _same_bytes(words: Array) -> bytes:
    """The bytes of a word that is the same everywhere, as most selectors are; else none."""
    first = words.flat[0]
    return int(first).to_bytes(4, "little") if (words == first).all() else b""


def _picked(words: list[Array], choices: bytes) -> Array:
    """Words made of these bytes of all words, counted from the lowest of the first one."""
    result = np.zeros((), np.uint32)
    for place, choice in enumerate(choices):
        word, byte = divmod(choice, 4)
        part = words[word] >> np.uint32(8 * byte) & np.uint32(0xFF)
        result = result | part << np.uint32(8 * place)
    return np.asarray(result)


def reversed_bits(a: Array) -> Array:
    """The bits in reverse order (v_bfrev_b32)."""
    for distance, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        ones = a.dtype.type(int.from_bytes(bytes([mask]) * a.itemsize, "little"))
        step = a.dtype.type(distance)
        a = (a >> step & ones) | (a & ones) << step
    return a.byteswap()


def next_random(a: Array) -> Array:
    """The state of a linear feedback shift register after this one (v_prng_b32)."""
    return a << np.uint32(1) ^ np.where(a >> np.uint32(31), np.uint32(197), np.uint32(0))


def population(a: Array) -> Array:
    """How many bits are set (v_bcnt_u32_b32)."""
    return np.bitwise_count(a).astype(np.uint32)


def lowest_set(a: Array) -> Array:
    """The position of the lowest bit that is set, or -1."""
    one = a.dtype.type(1)
    position = np.bitwise_count((a & (~a + one)) - one).astype(np.int32)
    return np.where(a == 0, np.int32(-1), position).view(np.uint32)


def leading_zeros(a: Array) -> Array:
    """How many zeros precede the highest bit that is set, or -1 where none is."""
    filled = a
    for distance in (1, 2, 4, 8, 16, 32)[: (8 * a.itemsize).bit_length() - 1]:
        filled = filled | filled >> a.dtype.type(distance)
    zeros = 8 * a.itemsize - np.bitwise_count(filled).astype(np.int32)
    return np.where(a == 0, np.int32(-1), zeros).view(np.uint32)


def leading_signs(a: Array) -> Array:
    """How many bits from the top equal the sign, or -1 where all of them do."""
    bits = a.view(f"u{a.itemsize}")
    return leading_zeros(np.where(a < 0, ~bits, bits))


def median(a: Array, b: Array, c: Array) -> Array:
    """The middle one of three numbers (v_med3)."""
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _saturated_bytes(a: Array) -> Array:
    """v_sat_pk_u8_i16: two halves with a sign, each as the nearest byte."""
    low, high = ((a >> np.uint32(s)).astype(np.uint16).view(np.int16) for s in (0, 16))
    x, y = (np.clip(v, 0, 255).astype(np.uint32) for v in (low, high))
    return np.asarray(x | y << np.uint32(8))


def _shift_pack(low: int, high: int, a: Array, b: Array, shift: Array) -> Array:
    """v_ashr_pk: both sources shifted, saturated to a byte, side by side."""
    x, y = (np.clip(v >> _shift(shift, 32).astype(np.int32), low, high) & 0xFF for v in (a, b))
    return np.asarray(x | y << 8).astype(np.uint32)


def saturating(kind: str, compute: Compute) -> Compute:
    """A function on integers of a type, whose results stop at the ends of its range."""
    dtype = dtype_of(kind)
    limits = np.iinfo(dtype)

    def saturated(*sources: Array) -> Array:
        wide: Any = compute(*(s.astype(np.int64) for s in sources))
        return np.clip(wide, limits.min, limits.max).astype(dtype)

    return saturated


def arithmetic(kind: str, compute: Compute, count: int = 2, **more: Any) -> Row:
    """A row of integers that `clamp` saturates."""
    return Row((kind,) * count, compute, saturating=saturating(kind, compute), **more)


def _copy(a: Array) -> Array:
    return a


def field_mask(bits: int) -> Compute:
    """A field of ones of some width, at some offset, in a word of so many bits."""
    dtype, last = dtype_of(f"u{bits}"), bits - 1

    def compute(width: Array, offset: Array) -> Array:
        count, low = ((v & last).astype(dtype) for v in (width, offset))
        return ((dtype.type(1) << count) - dtype.type(1)) << low

    return compute


INTEGER: dict[str, Row] = {
    "v_mov_b64": row("b64", _copy, 0, slots=1),
    "v_mov_b32": row("u32", _copy, 0),
    "v_accvgpr_read_b32": row("u32", _copy, 0, banks=("v", "a"), bare=True, short=False),
    "v_accvgpr_write_b32": row("u32", _copy, 0, banks=("a", "vs"), bare=True, short=False),
    "v_accvgpr_mov_b32": row("u32", _copy, 0, banks=("a", "a"), bare=True),
    "v_not_b32": row("u32", lambda a: ~a, 0),
    "v_and_b32": row("u32 u32", lambda a, b: a & b, 0, 1),
    "v_or_b32": row("u32 u32", lambda a, b: a | b, 0, 1),
    "v_xor_b32": row("u32 u32", lambda a, b: a ^ b),
    "v_xnor_b32": row("u32 u32", lambda a, b: ~(a ^ b)),
    "v_or3_b32": row("u32 u32 u32", lambda a, b, c: a | b | c, 0, 1, 2),
    "v_and_or_b32": row("u32 u32 u32", lambda a, b, c: a & b | c, 0, 1, 2),
    "v_bfi_b32": row("u32 u32 u32", lambda a, b, c: a & b | ~a & c, 1, 2),
    "v_bfrev_b32": row("u32", reversed_bits, 0),
    "v_prng_b32": row("u32", next_random),
    "v_bfm_b32": row("u32 u32", field_mask(32), short=False),
    "v_lshlrev_b32": row("u32 u32", lambda a, b: b << _shift(a, 32), 1),
    "v_lshrrev_b32": row("u32 u32", lambda a, b: b >> _shift(a, 32), 1),
    "v_ashrrev_i32": row("u32 i32", lambda a, b: b >> _shift(a, 32).astype(np.int32), 1),
    "v_lshlrev_b64": row(
        "u32 u64", lambda a, b: b << _shift(a, 64).astype(np.uint64), 1, short=False),
    "v_lshrrev_b64": row(
        "u32 u64", lambda a, b: b >> _shift(a, 64).astype(np.uint64), 1, short=False),
    "v_ashrrev_i64": row(
        "u32 i64", lambda a, b: b >> _shift(a, 64).astype(np.int64), 1, short=False),
    "v_lshl_or_b32": row("u32 u32 u32", lambda a, b, c: a << _shift(b, 32) | c, 0, 2),
    "v_bfe_u32": row("u32 u32 u32", _extract_unsigned, 0),
    "v_bfe_i32": row("i32 u32 u32", _extract_signed, 0),
    "v_perm_b32": row("u32 u32 u32", _permute, 0, 1),
    "v_alignbit_b32": row("u32 u32 u32", _align_bit, 0, 1),
    "v_alignbyte_b32": row("u32 u32 u32", _align_byte, 0, 1),
    "v_add_u32": arithmetic("u32", lambda a, b: a + b),
    "v_sub_u32": arithmetic("u32", lambda a, b: a - b),
    "v_subrev_u32": arithmetic("u32", lambda a, b: b - a),
    "v_add_i32": arithmetic("i32", lambda a, b: a + b, short=False),
    "v_sub_i32": arithmetic("i32", lambda a, b: a - b, short=False),
    "v_add_u16": arithmetic("u16", lambda a, b: a + b),
    "v_sub_u16": arithmetic("u16", lambda a, b: a - b),
    "v_subrev_u16": arithmetic("u16", lambda a, b: b - a),
    "v_add_i16": arithmetic("i16", lambda a, b: a + b, short=False),
    "v_sub_i16": arithmetic("i16", lambda a, b: a - b, short=False),
    "v_mad_u16": arithmetic("u16", lambda a, b, c: a * b + c, 3),
    "v_mad_legacy_u16": arithmetic("u16", lambda a, b, c: a * b + c, 3, op_sel=False),
    "v_mad_i16": arithmetic("i16", lambda a, b, c: a * b + c, 3),
    "v_mad_legacy_i16": arithmetic("i16", lambda a, b, c: a * b + c, 3, op_sel=False),
    "v_mul_lo_u16": row("u16 u16", lambda a, b: a * b),
    "v_add3_u32": row("u32 u32 u32", lambda a, b, c: a + b + c),
    "v_lshl_add_u32": row("u32 u32 u32", lambda a, b, c: (a << _shift(b, 32)) + c),
    "v_lshl_add_u64": Row(
        ("u64", "u32", "u64"), lambda a, b, c: (a << (b & 7).astype(np.uint64)) + c,
        moves=(0, 2), adds=True),
    "v_add_lshl_u32": row("u32 u32 u32", lambda a, b, c: (a + b) << _shift(c, 32)),
    "v_xad_u32": row("u32 u32 u32", lambda a, b, c: (a ^ b) + c),
    "v_mul_lo_u32": row("u32 u32", lambda a, b: a * b, short=False, slots=QUARTER_RATE),
    "v_mul_hi_u32": row(
        "u32 u32", partial(multiply_high, np.uint64), short=False,
        slots=QUARTER_RATE),
    "v_mul_hi_i32": row(
        "i32 i32", partial(multiply_high, np.int64), short=False,
        slots=QUARTER_RATE),
    "v_mul_u32_u24": row("u32 u32", lambda a, b: _unsigned_24(a) * _unsigned_24(b)),
    "v_mul_i32_i24": row("i32 i32", lambda a, b: _signed_24(a) * _signed_24(b)),
    "v_mul_hi_u32_u24": row(
        "u32 u32", lambda a, b: multiply_high(np.uint64, _unsigned_24(a), _unsigned_24(b))),
    "v_mul_hi_i32_i24": row(
        "i32 i32", lambda a, b: multiply_high(np.int64, _signed_24(a), _signed_24(b))),
    "v_mad_u32_u24": row("u32 u32 u32", lambda a, b, c: _unsigned_24(a) * _unsigned_24(b) + c),
    "v_mad_i32_i24": row("i32 i32 i32", lambda a, b, c: _signed_24(a) * _signed_24(b) + c),
    "v_mad_u32_u16": row("u16 u16 u32", lambda a, b, c: a.astype(np.uint32) * b + c),
    "v_mad_i32_i16": row("i16 i16 i32", lambda a, b, c: a.astype(np.int32) * b + c),
    "v_sat_pk_u8_i16": row("u32", _saturated_bytes),
    "v_bcnt_u32_b32": row("u32 u32", lambda a, b: population(a) + b, short=False),
    "v_ffbh_u32": row("u32", leading_zeros),
    "v_ffbl_b32": row("u32", lowest_set),
    "v_ffbh_i32": row("i32", leading_signs),
    "v_lshlrev_b16": row("u16 u16", lambda a, b: b << _shift(a, 16), 1),
    "v_lshrrev_b16": row("u16 u16", lambda a, b: b >> _shift(a, 16), 1),
    "v_ashrrev_i16": row("u16 i16", lambda a, b: b >> _shift(a, 16).astype(np.int16), 1),
    "v_ashr_pk_i8_i32": row("i32 i32 u32", partial(_shift_pack, -128, 127)),
    "v_ashr_pk_u8_i32": row("i32 i32 u32", partial(_shift_pack, 0, 255)),
}  # fmt: skip
for _kind in ("u32", "i32", "u16", "i16"):
    for _name, _pick in (("min", np.minimum), ("max", np.maximum)):
        INTEGER[f"v_{_name}_{_kind}"] = row(f"{_kind} {_kind}", _pick)
        INTEGER[f"v_{_name}3_{_kind}"] = row(
            f"{_kind} {_kind} {_kind}", lambda a, b, c, pick=_pick: pick(pick(a, b), c)
        )
    INTEGER[f"v_med3_{_kind}"] = row(f"{_kind} {_kind} {_kind}", median)
