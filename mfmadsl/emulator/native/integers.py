"""Vector instructions on integers and bits in native code; their meaning is that of the rows of
`instructions/integer.py`, with which tests compare them."""

from __future__ import annotations

from collections.abc import Callable

from mfmadsl.emulator.native.number import VectorNumber

Compute = Callable[..., VectorNumber]


def shift(amount: VectorNumber, width: int, kind: str) -> VectorNumber:
    """How far to shift: the lowest bits of a number, in the type of what is shifted."""
    return (amount.pattern() & width - 1).to(kind)


def multiply_high(wide: str, a: VectorNumber, b: VectorNumber) -> VectorNumber:
    """The upper 32 bits of a product."""
    return (a.to(wide) * b.to(wide) >> 32).to(a.kind)


def _unsigned_24(a: VectorNumber) -> VectorNumber:
    return a & 0xFFFFFF


def _signed_24(a: VectorNumber) -> VectorNumber:
    return a << 8 >> 8


def pair_of_words(low: VectorNumber, high: VectorNumber) -> VectorNumber:
    """Two words as one number of 64 bits."""
    return low.pattern().to("u64") | high.pattern().to("u64") << 32


def pair_of_halves(low: VectorNumber, high: VectorNumber) -> VectorNumber:
    """Two numbers of 16 bits side by side in a word."""
    return low.pattern().to("u32") | high.pattern().to("u32") << 16


def _align_bit(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
    return (pair_of_words(b, a) >> shift(c, 32, "u64")).to("u32")


def _extract_unsigned(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
    ones = (a.constant(1) << shift(c, 32, "u32")) - 1
    return a >> shift(b, 32, "u32") & ones


def _extract_signed(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
    width = shift(c, 32, "u32")
    field = (a >> shift(b, 32, "i32")).as_("u32") & (width.constant(1) << width) - 1
    sign = (width == 0).choose(0, width.constant(1) << (width.maximum(1) - 1))
    return ((field ^ sign) - sign).as_("i32")


def _permute(a: VectorNumber, b: VectorNumber, selector: VectorNumber) -> VectorNumber:
    result = a.constant(0)
    for byte in range(4):
        choice = selector >> 8 * byte & 0xFF
        word = ((choice & 4) != 0).choose(a, b)
        picked = word >> ((choice & 3) << 3) & 0xFF
        # From 8 on the sign of byte 1, 3, 5 or 7, then zeros, then ones.
        word = ((choice & 2) != 0).choose(a, b)
        sign = word >> ((choice & 1) != 0).choose(word.constant(31), 15) & 1
        filled = (choice < 12).choose(sign * 0xFF, (choice > 12).choose(word.constant(0xFF), 0))
        result = result | (choice < 8).choose(picked, filled) << 8 * byte
    return result


def leading_zeros(a: VectorNumber) -> VectorNumber:
    """How many zeros precede the highest bit that is set, or -1 where none is."""
    found = a.intrinsic("ctlz", flags=[False]).to("u32")
    return (a == 0).choose(-1, found)


def lowest_set(a: VectorNumber) -> VectorNumber:
    """The position of the lowest bit that is set, or -1."""
    found = a.intrinsic("cttz", flags=[False]).to("u32")
    return (a == 0).choose(-1, found)


def leading_signs(a: VectorNumber) -> VectorNumber:
    """How many bits from the top equal the sign, or -1 where all of them do."""
    bits = a.pattern()
    return leading_zeros((a < 0).choose(~bits, bits))


def population(a: VectorNumber) -> VectorNumber:
    """How many bits are set."""
    return a.pattern().intrinsic("ctpop").to("u32")


def _median(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
    return a.minimum(b).maximum(a.maximum(b).minimum(c))


def field_mask(kind: str) -> Compute:
    """A field of ones of some width, at some offset."""
    bits = int(kind[1:])

    def compute(width: VectorNumber, offset: VectorNumber) -> VectorNumber:
        count, low = shift(width, bits, kind), shift(offset, bits, kind)
        return ((count.constant(1) << count) - 1) << low

    return compute


def _saturated(kind: str, wide: str, compute: Compute) -> Compute:
    """A function whose results stop at the ends of a type's range."""
    bits = int(kind[1:])
    low, high = (0, (1 << bits) - 1) if kind[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)

    def saturated(*sources: VectorNumber) -> VectorNumber:
        found = compute(*(source.to(wide) for source in sources))
        return found.maximum(low).minimum(high).to(kind)

    return saturated


_ARITHMETIC: dict[str, Compute] = {
    **{f"v_add_{kind}": lambda a, b: a + b for kind in ("u32", "i32", "u16", "i16")},
    **{f"v_sub_{kind}": lambda a, b: a - b for kind in ("u32", "i32", "u16", "i16")},
    **{f"v_subrev_{kind}": lambda a, b: b - a for kind in ("u32", "u16")},
    **{f"v_mad_{kind}": lambda a, b, c: a * b + c for kind in ("u16", "i16")},
    **{f"v_mad_legacy_{kind}": lambda a, b, c: a * b + c for kind in ("u16", "i16")},
}
SATURATING: dict[str, Compute] = {
    name: _saturated(name[-3:], "i64", compute) for name, compute in _ARITHMETIC.items()
}
"""What `clamp` makes of sums."""

INTEGERS: dict[str, Compute] = {
    **_ARITHMETIC,
    **dict.fromkeys(
        (
            "v_mov_b64", "v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32",
            "v_accvgpr_mov_b32",
        ),
        lambda a: a,
    ),
    "v_not_b32": lambda a: ~a,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_bfrev_b32": lambda a: a.intrinsic("bitreverse"),
    "v_prng_b32": lambda a: a << 1 ^ (a >> 31) * 197,
    "v_bfm_b32": field_mask("u32"),
    "v_lshlrev_b32": lambda a, b: b << shift(a, 32, "u32"),
    "v_lshrrev_b32": lambda a, b: b >> shift(a, 32, "u32"),
    "v_ashrrev_i32": lambda a, b: b >> shift(a, 32, "i32"),
    "v_lshlrev_b64": lambda a, b: b << shift(a, 64, "u64"),
    "v_lshrrev_b64": lambda a, b: b >> shift(a, 64, "u64"),
    "v_ashrrev_i64": lambda a, b: b >> shift(a, 64, "i64"),
    "v_lshl_or_b32": lambda a, b, c: a << shift(b, 32, "u32") | c,
    "v_bfe_u32": _extract_unsigned,
    "v_bfe_i32": _extract_signed,
    "v_perm_b32": _permute,
    "v_alignbit_b32": _align_bit,
    "v_alignbyte_b32": lambda a, b, c: _align_bit(a, b, (c & 3) << 3),
    "v_mul_lo_u16": lambda a, b: a * b,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_add_u32": lambda a, b, c: (a << shift(b, 32, "u32")) + c,
    "v_lshl_add_u64": lambda a, b, c: (a << shift(b, 8, "u64")) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << shift(c, 32, "u32"),
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: multiply_high("u64", a, b),
    "v_mul_hi_i32": lambda a, b: multiply_high("i64", a, b),
    "v_mul_u32_u24": lambda a, b: _unsigned_24(a) * _unsigned_24(b),
    "v_mul_i32_i24": lambda a, b: _signed_24(a) * _signed_24(b),
    "v_mul_hi_u32_u24": lambda a, b: multiply_high("u64", _unsigned_24(a), _unsigned_24(b)),
    "v_mul_hi_i32_i24": lambda a, b: multiply_high("i64", _signed_24(a), _signed_24(b)),
    "v_mad_u32_u24": lambda a, b, c: _unsigned_24(a) * _unsigned_24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: _signed_24(a) * _signed_24(b) + c,
    "v_mad_u32_u16": lambda a, b, c: a.to("u32") * b.to("u32") + c,
    "v_mad_i32_i16": lambda a, b, c: a.to("i32") * b.to("i32") + c,
    "v_bcnt_u32_b32": lambda a, b: population(a) + b,
    "v_ffbh_u32": leading_zeros,
    "v_ffbl_b32": lowest_set,
    "v_ffbh_i32": leading_signs,
    "v_lshlrev_b16": lambda a, b: b << shift(a, 16, "u16"),
    "v_lshrrev_b16": lambda a, b: b >> shift(a, 16, "u16"),
    "v_ashrrev_i16": lambda a, b: b >> shift(a, 16, "i16"),
}  # fmt: skip


def _pick_of_three(pick: str) -> Compute:
    def compute(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
        found: VectorNumber = getattr(getattr(a, pick)(b), pick)(c)
        return found

    return compute


def _pick_of_two(pick: str) -> Compute:
    def compute(a: VectorNumber, b: VectorNumber) -> VectorNumber:
        found: VectorNumber = getattr(a, pick)(b)
        return found

    return compute


for _kind in ("u32", "i32", "u16", "i16"):
    for _name, _pick in (("min", "minimum"), ("max", "maximum")):
        INTEGERS[f"v_{_name}_{_kind}"] = _pick_of_two(_pick)
        INTEGERS[f"v_{_name}3_{_kind}"] = _pick_of_three(_pick)
    INTEGERS[f"v_med3_{_kind}"] = _median
