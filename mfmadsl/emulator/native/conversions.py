"""Conversions between types in native code; their meaning is that of `instructions/convert.py`."""

from __future__ import annotations

from mfmadsl.emulator.native.integers import Compute, pair_of_halves
from mfmadsl.emulator.native.number import VectorNumber


def _to(kind: str) -> Compute:
    return lambda a: a.to(kind)


def _to_integer(kind: str) -> Compute:
    return lambda a: a.truncated(kind)


def _toward_zero(a: VectorNumber) -> VectorNumber:
    half = a.to("f16")
    beyond = half.to("f32").absolute() > a.absolute()
    return beyond.choose(half.pattern() - 1, half.pattern())


def to_bfloat(a: VectorNumber) -> VectorNumber:
    """The bits of the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = a.pattern()
    rounded = bits + 0x7FFF + (bits >> 16 & 1) >> 16
    return a.is_nan().choose(bits >> 16 | 0x40, rounded).to("u16")


def _byte(place: int) -> Compute:
    return lambda a: (a >> 8 * place & 0xFF).to("f32")


def _pair(convert: Compute) -> Compute:
    return lambda a, b: pair_of_halves(convert(a), convert(b))


CONVERSIONS: dict[str, Compute] = {
    "v_cvt_f32_f16": _to("f32"),
    "v_cvt_f16_f32": _to("f16"),
    "v_cvt_f64_f32": _to("f64"),
    "v_cvt_f32_f64": _to("f32"),
    "v_cvt_f32_i32": _to("f32"),
    "v_cvt_f32_u32": _to("f32"),
    "v_cvt_f64_i32": _to("f64"),
    "v_cvt_f64_u32": _to("f64"),
    "v_cvt_i32_f32": _to_integer("i32"),
    "v_cvt_u32_f32": _to_integer("u32"),
    "v_cvt_i32_f64": _to_integer("i32"),
    "v_cvt_u32_f64": _to_integer("u32"),
    "v_cvt_flr_i32_f32": lambda a: a.intrinsic("floor").truncated("i32"),
    **{f"v_cvt_f32_ubyte{i}": _byte(i) for i in range(4)},
    "v_cvt_pkrtz_f16_f32": _pair(_toward_zero),
    "v_cvt_pk_f16_f32": _pair(_to("f16")),
    "v_cvt_pk_bf16_f32": _pair(to_bfloat),
    "v_pack_b32_f16": pair_of_halves,
}
