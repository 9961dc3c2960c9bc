"""Vector instructions that turn one number format into another."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tests.emulator.instructions.manual.bits import number, rounded, signed

Model = Callable[..., int]


def _widened(source: str, target: str) -> Model:
    return lambda a: rounded(number(a, source), target)


def _from_integer(bits: int, is_signed: bool, target: str) -> Model:
    return lambda a: rounded(Fraction(signed(a, bits) if is_signed else a), target)


def _to_integer(
    source: str, bits: int, is_signed: bool, whole: Callable[[float], int] = math.trunc
) -> Model:
    low = -(1 << (bits - 1)) if is_signed else 0
    high = (1 << (bits - is_signed)) - 1

    def model(a: int) -> int:
        x = number(a, source)
        if math.isnan(x):
            return 0
        if math.isinf(x):
            return high if x > 0 else low
        return min(max(whole(x), low), high)

    return model


def _toward_zero(a: int) -> int:
    """f32 to f16, cut off."""
    x = number(a, "f32")
    nearest = rounded(x, "f16")
    if math.isnan(x) or math.isinf(x) or abs(number(nearest, "f16")) <= abs(x):
        return nearest
    return nearest - 1


def _pair(model: Model) -> Model:
    def both(a: int, b: int) -> int:
        low, high = (int(model(x)) & 0xFFFF for x in (a, b))
        return low | high << 16

    return both


def _half_up(x: float) -> int:
    return math.floor(Fraction(x) + Fraction(1, 2))


def _normalized(scale: int, low: int, kind: str = "f32") -> Model:
    def model(a: int) -> int:
        x = number(rounded(Fraction(number(a, kind)) * scale, "f32"), "f32") if math.isfinite(
            number(a, kind)) else number(a, kind)  # fmt: skip
        if math.isnan(x):
            return 0
        return int(min(max(round(x) if math.isfinite(x) else x, low), scale))

    return model


def _byte_into(a: int, place: int, c: int) -> int:
    x = number(a, "f32")
    value = 0 if math.isnan(x) else int(min(max(round(x) if math.isfinite(x) else x, 0), 255))
    shift = 8 * (place & 3)
    return c & ~(255 << shift) | value << shift


CONVERSIONS: dict[str, Model] = {
    "v_cvt_f32_f16": _widened("f16", "f32"),
    "v_cvt_f16_f32": _widened("f32", "f16"),
    "v_cvt_f64_f32": _widened("f32", "f64"),
    "v_cvt_f32_f64": _widened("f64", "f32"),
    "v_cvt_f32_i32": _from_integer(32, True, "f32"),
    "v_cvt_f32_u32": _from_integer(32, False, "f32"),
    "v_cvt_f64_i32": _from_integer(32, True, "f64"),
    "v_cvt_f64_u32": _from_integer(32, False, "f64"),
    "v_cvt_f16_i16": _from_integer(16, True, "f16"),
    "v_cvt_f16_u16": _from_integer(16, False, "f16"),
    "v_cvt_i32_f32": _to_integer("f32", 32, True),
    "v_cvt_u32_f32": _to_integer("f32", 32, False),
    "v_cvt_i32_f64": _to_integer("f64", 32, True),
    "v_cvt_u32_f64": _to_integer("f64", 32, False),
    "v_cvt_i16_f16": _to_integer("f16", 16, True),
    "v_cvt_u16_f16": _to_integer("f16", 16, False),
    "v_cvt_rpi_i32_f32": _to_integer("f32", 32, True, _half_up),
    "v_cvt_flr_i32_f32": _to_integer("f32", 32, True, math.floor),
    **{f"v_cvt_f32_ubyte{i}": lambda a, s=8 * i: rounded(Fraction(a >> s & 255), "f32")
       for i in range(4)},
    "v_cvt_pkrtz_f16_f32": _pair(_toward_zero),
    "v_cvt_pk_f16_f32": _pair(_widened("f32", "f16")),
    "v_cvt_pk_bf16_f32": _pair(_widened("f32", "bf16")),
    "v_cvt_pknorm_i16_f32": _pair(_normalized(32767, -32767)),
    "v_cvt_pknorm_u16_f32": _pair(_normalized(65535, 0)),
    "v_cvt_pk_u16_u32": _pair(lambda a: min(a, 65535)),
    "v_cvt_pk_i16_i32": _pair(lambda a: min(max(signed(a), -32768), 32767)),
    "v_cvt_pk_u8_f32": _byte_into,
    "v_cvt_pkaccum_u8_f32": _byte_into,
    "v_cvt_pknorm_i16_f16": _pair(_normalized(32767, -32767, "f16")),
    "v_cvt_pknorm_u16_f16": _pair(_normalized(65535, 0, "f16")),
    "v_cvt_norm_i16_f16": _normalized(32767, -32767, "f16"),
    "v_cvt_norm_u16_f16": _normalized(65535, 0, "f16"),
    "v_cvt_off_f32_i4": lambda a: rounded(Fraction(signed(a, 4), 16), "f32"),
    "v_cvt_f32_bf16": lambda a: a << 16,
    "v_pack_b32_f16": lambda a, b: a | b << 16,
}  # fmt: skip
