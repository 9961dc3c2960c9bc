"""Scalar instructions in native code; their meaning is that of the rows of
`instructions/scalar.py`, with which tests compare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mfmadsl.emulator.native.integers import (
    Compute,
    field_mask,
    leading_signs,
    leading_zeros,
    lowest_set,
    multiply_high,
    pair_of_words,
    population,
)
from mfmadsl.emulator.native.number import VectorNumber


@dataclass(frozen=True)
class Scalar:
    """What a scalar instruction computes, and how the condition code follows from the sources and
    the result."""

    compute: Compute
    scc: Compute | None = None


def _nonzero(*values: VectorNumber) -> VectorNumber:
    return values[-1] != 0


def _add_overflows(a: VectorNumber, b: VectorNumber, result: VectorNumber) -> VectorNumber:
    return ((a ^ result) & (b ^ result)) < 0


def _subtract_overflows(a: VectorNumber, b: VectorNumber, result: VectorNumber) -> VectorNumber:
    return ((a ^ b) & (a ^ result)) < 0


def _carry(total: VectorNumber) -> VectorNumber:
    return (total < 0) | (total > 0xFFFF_FFFF)


def _with_carry(a: VectorNumber, b: VectorNumber, scc: VectorNumber) -> VectorNumber:
    return a.to("i64") + b.to("i64") + scc.to("u32").to("i64")


def _with_borrow(a: VectorNumber, b: VectorNumber, scc: VectorNumber) -> VectorNumber:
    return a.to("i64") - b.to("i64") - scc.to("u32").to("i64")


def _shift_add(count: int) -> Scalar:
    def wide(a: VectorNumber, b: VectorNumber, _: VectorNumber) -> VectorNumber:
        return (a.to("u64") << count) + b.to("u64") > 0xFFFF_FFFF

    return Scalar(lambda a, b: (a << count) + b, wide)


def _field(a: VectorNumber, control: VectorNumber) -> VectorNumber:
    """Bits control[5:0] and up, control[22:16] of them, sign-extended in a signed type."""
    bits, kind = a.bits, a.kind
    offset = (control & bits - 1).to("u64")
    width = (control >> 16 & 127).minimum(bits).to("u64")
    signed = kind[0] == "i"
    wide = a.to("i64" if signed else "u64")
    value = (wide >> offset.as_(wide.kind)).as_("u64")
    one = width.constant(1)
    value = value & (width >= 64).choose(-1, (one << width.minimum(63)) - 1)
    if signed:
        sign = (width == 0).choose(0, one << width.maximum(1) - 1)
        value = (value ^ sign) - sign
    return value.to(f"u{bits}").as_(kind)


def _low(a: VectorNumber) -> VectorNumber:
    return a & 0xFFFF


def _shift(direction: str) -> Compute:
    def compute(a: VectorNumber, b: VectorNumber) -> VectorNumber:
        amount = (b & a.bits - 1).to(a.kind)
        return a << amount if direction == "left" else a >> amount

    return compute


def _choose(a: VectorNumber, b: VectorNumber, scc: VectorNumber) -> VectorNumber:
    return scc.choose(a, b)


def _sign_extended(kind: str) -> Compute:
    return lambda a: a.to(kind).to("i32")


def _bit(place: VectorNumber, width: int) -> VectorNumber:
    return place.constant(1, f"u{width}") << (place & width - 1).to(f"u{width}")


def _reversed(a: VectorNumber) -> VectorNumber:
    return a.intrinsic("bitreverse")


SCALARS: dict[str, Scalar] = {
    **dict.fromkeys(("s_mov_b32", "s_mov_b64", "s_movk_i32"), Scalar(lambda a: a)),
    **dict.fromkeys(
        ("s_cmov_b32", "s_cmov_b64", "s_cmovk_i32", "s_cselect_b32", "s_cselect_b64"),
        Scalar(_choose),
    ),
    "s_add_u32": Scalar(lambda a, b: a + b, lambda a, b, r: r < a),
    "s_sub_u32": Scalar(lambda a, b: a - b, lambda a, b, r: b > a),
    "s_addc_u32": Scalar(
        lambda a, b, c: _with_carry(a, b, c).to("u32"),
        lambda a, b, c, _: _carry(_with_carry(a, b, c)),
    ),
    "s_subb_u32": Scalar(
        lambda a, b, c: _with_borrow(a, b, c).to("u32"),
        lambda a, b, c, _: _carry(_with_borrow(a, b, c)),
    ),
    "s_add_i32": Scalar(lambda a, b: a + b, _add_overflows),
    "s_sub_i32": Scalar(lambda a, b: a - b, _subtract_overflows),
    "s_addk_i32": Scalar(lambda a, b: a + b, _add_overflows),
    "s_mulk_i32": Scalar(lambda a, b: a * b),
    "s_mul_i32": Scalar(lambda a, b: a * b),
    "s_mul_hi_u32": Scalar(lambda a, b: multiply_high("u64", a, b)),
    "s_mul_hi_i32": Scalar(lambda a, b: multiply_high("i64", a, b)),
    "s_absdiff_i32": Scalar(lambda a, b: (a - b).absolute(), _nonzero),
    "s_min_u32": Scalar(lambda a, b: a.minimum(b), lambda a, b, r: a < b),
    "s_max_u32": Scalar(lambda a, b: a.maximum(b), lambda a, b, r: a > b),
    "s_min_i32": Scalar(lambda a, b: a.minimum(b), lambda a, b, r: a < b),
    "s_max_i32": Scalar(lambda a, b: a.maximum(b), lambda a, b, r: a > b),
    "s_bfm_b32": Scalar(field_mask("u32")),
    "s_bfm_b64": Scalar(field_mask("u64")),
    **dict.fromkeys(("s_bfe_u32", "s_bfe_i32", "s_bfe_u64", "s_bfe_i64"), Scalar(_field, _nonzero)),
    "s_pack_ll_b32_b16": Scalar(lambda a, b: _low(a) | b << 16),
    "s_pack_lh_b32_b16": Scalar(lambda a, b: _low(a) | (b & 0xFFFF0000)),
    "s_pack_hh_b32_b16": Scalar(lambda a, b: a >> 16 | (b & 0xFFFF0000)),
    "s_abs_i32": Scalar(lambda a: a.absolute(), _nonzero),
    "s_sext_i32_i16": Scalar(_sign_extended("i16")),
    "s_sext_i32_i8": Scalar(_sign_extended("i8")),
    "s_bitset0_b32": Scalar(lambda a, old: old & ~_bit(a, 32)),
    "s_bitset1_b32": Scalar(lambda a, old: old | _bit(a, 32)),
    "s_bitset0_b64": Scalar(lambda a, old: old & ~_bit(a, 64)),
    "s_bitset1_b64": Scalar(lambda a, old: old | _bit(a, 64)),
    **{f"s_lshl{count}_add_u32": _shift_add(count) for count in range(1, 5)},
    "s_flbit_i32": Scalar(leading_signs),
    "s_flbit_i32_i64": Scalar(leading_signs),
}
_LOGIC: dict[str, Callable[[VectorNumber, VectorNumber], VectorNumber]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
for _bits in ("b32", "b64"):
    SCALARS |= {
        **{f"s_{name}_{_bits}": Scalar(compute, _nonzero) for name, compute in _LOGIC.items()},
        f"s_lshl_{_bits}": Scalar(_shift("left"), _nonzero),
        f"s_lshr_{_bits}": Scalar(_shift("right"), _nonzero),
        f"s_ashr_i{_bits[1:]}": Scalar(_shift("right"), _nonzero),
        f"s_not_{_bits}": Scalar(lambda a: ~a, _nonzero),
        f"s_brev_{_bits}": Scalar(_reversed),
        f"s_bcnt0_i32_{_bits}": Scalar(lambda a: population(~a), _nonzero),
        f"s_bcnt1_i32_{_bits}": Scalar(population, _nonzero),
        f"s_ff0_i32_{_bits}": Scalar(lambda a: lowest_set(~a)),
        f"s_ff1_i32_{_bits}": Scalar(lowest_set),
        f"s_flbit_i32_{_bits}": Scalar(leading_zeros),
    }

RELATIONS: dict[str, Compute] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def _bit_is(expected: int) -> Compute:
    def compare(value: VectorNumber, position: VectorNumber) -> VectorNumber:
        bit = (position & value.bits - 1).to(value.kind)
        return (value >> bit & 1) == expected

    return compare


COMPARISONS: dict[str, Compute] = {
    **{
        f"s_{form}_{name}_{kind}": compare
        for form in ("cmp", "cmpk")
        for name, compare in RELATIONS.items()
        for kind in ("u32", "i32")
    },
    "s_cmp_eq_u64": RELATIONS["eq"],
    "s_cmp_lg_u64": RELATIONS["lg"],
    **{f"s_bitcmp{bit}_b{bits}": _bit_is(bit) for bit in (0, 1) for bits in (32, 64)},
}

SAVED: dict[str, Callable[[VectorNumber, VectorNumber], VectorNumber]] = {
    **_LOGIC,
    "andn1": lambda s, e: ~s & e,
    "orn1": lambda s, e: ~s | e,
}
"""How the new EXEC follows from the source and EXEC."""

__all__ = ["COMPARISONS", "SAVED", "SCALARS", "pair_of_words"]
