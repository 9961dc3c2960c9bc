"""Vector instructions that turn one number format into another (CDNA3 ISA, VOP1 and VOP3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mfmadsl.emulator.instructions.number import (
    OCP,
    NarrowFloat,
    from_bfloat,
    narrow_floats,
    to_bfloat,
    to_narrow,
    values_of,
)
from mfmadsl.emulator.instructions.row import Row, row
from mfmadsl.emulator.machine.bits import Array, Compute, pair_of_halves, pair_of_words
from mfmadsl.model import assumed


def to_integer(dtype: Any) -> Compute:
    """The function that rounds floats toward zero, saturating, and makes NaN 0."""
    limits = np.iinfo(dtype)

    def compute(a: Array) -> Array:
        wide = np.nan_to_num(np.trunc(a.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        return np.clip(wide, limits.min, limits.max).astype(dtype)

    return compute


def _cast(dtype: Any) -> Compute:
    return lambda a: a.astype(dtype)


def _toward_zero(a: Array) -> Array:
    """A float as a half, toward zero; finite numbers stay finite."""
    half = a.astype(np.float16)
    beyond = np.abs(half.astype(np.float32)) > np.abs(a)
    return np.where(beyond, np.nextafter(half, np.float16(0)), half)


def _normalized(scale: int, dtype: Any) -> Compute:
    """A number in [-1, 1], as that part of the largest integer."""
    low = -scale if np.dtype(dtype).kind == "i" else 0
    return lambda a: np.clip(np.rint(a * np.float32(scale)), low, scale).astype(dtype)


def _byte(index: int) -> Compute:
    return lambda a: (a >> np.uint32(8 * index) & np.uint32(0xFF)).astype(np.float32)


def _pack_byte(a: Array, position: Array, c: Array) -> Array:
    """v_cvt_pk_u8_f32: a number as a byte at a place in c."""
    shift = 8 * (position & 3)
    byte = np.clip(np.nan_to_num(np.rint(a)), 0, 255).astype(np.uint32)
    return c & ~(np.uint32(0xFF) << shift) | byte << shift


def _pair(kind: str, convert: Compute) -> Row:
    """A row that makes two numbers such of 16 bits, and puts them side by side."""
    return row(f"{kind} {kind}", lambda a, b: pair_of_halves(convert(a), convert(b)), short=False)


CONVERT: dict[str, Row] = {
    "v_cvt_f32_f16": row("f16", _cast(np.float32)),
    "v_cvt_f16_f32": row("f32", _cast(np.float16)),
    "v_cvt_f64_f32": row("f32", _cast(np.float64)),
    "v_cvt_f32_f64": row("f64", _cast(np.float32)),
    "v_cvt_f32_i32": row("i32", _cast(np.float32)),
    "v_cvt_f32_u32": row("u32", _cast(np.float32)),
    "v_cvt_f64_i32": row("i32", _cast(np.float64)),
    "v_cvt_f64_u32": row("u32", _cast(np.float64)),
    "v_cvt_f16_i16": row("i16", _cast(np.float16)),
    "v_cvt_f16_u16": row("u16", _cast(np.float16)),
    "v_cvt_i32_f32": row("f32", to_integer(np.int32)),
    "v_cvt_u32_f32": row("f32", to_integer(np.uint32)),
    "v_cvt_i32_f64": row("f64", to_integer(np.int32)),
    "v_cvt_u32_f64": row("f64", to_integer(np.uint32)),
    "v_cvt_i16_f16": row("f16", to_integer(np.int16)),
    "v_cvt_u16_f16": row("f16", to_integer(np.uint16)),
    "v_cvt_rpi_i32_f32": row("f32", lambda a: to_integer(np.int32)(np.floor(a + np.float64(0.5)))),
    "v_cvt_flr_i32_f32": row("f32", lambda a: to_integer(np.int32)(np.floor(a))),
    **{f"v_cvt_f32_ubyte{i}": row("u32", _byte(i)) for i in range(4)},
    "v_cvt_pkrtz_f16_f32": _pair("f32", _toward_zero),
    "v_cvt_pk_f16_f32": _pair("f32", _cast(np.float16)),
    "v_cvt_pk_bf16_f32": _pair("f32", to_bfloat),
    "v_cvt_pknorm_i16_f32": _pair("f32", _normalized(32767, np.int16)),
    "v_cvt_pknorm_u16_f32": _pair("f32", _normalized(65535, np.uint16)),
    "v_cvt_pknorm_i16_f16": _pair("f16", _normalized(32767, np.int16)),
    "v_cvt_pknorm_u16_f16": _pair("f16", _normalized(65535, np.uint16)),
    "v_cvt_norm_i16_f16": row("f16", _normalized(32767, np.int16)),
    "v_cvt_norm_u16_f16": row("f16", _normalized(65535, np.uint16)),
    "v_cvt_pkaccum_u8_f32": row("f32 u32 u32", _pack_byte, accumulates=True, short=False),
    "v_cvt_pk_u16_u32": _pair("u32", lambda a: np.minimum(a, 65535).astype(np.uint16)),
    "v_cvt_pk_i16_i32": _pair("i32", lambda a: np.clip(a, -32768, 32767).astype(np.int16)),
    "v_cvt_pk_u8_f32": row("f32 u32 u32", _pack_byte),
    "v_pack_b32_f16": row("f16 f16", pair_of_halves, 0, 1, short=False),
}  # fmt: skip


def _narrow(number: NarrowFloat, a: Array, b: Array, mode: Array) -> Array:
    """Two numbers made bytes, side by side; FP16_OVFL, bit 23 of the mode, makes them saturate."""
    saturate = mode >> np.uint32(23) & np.uint32(1) != 0
    low, high = (
        np.where(saturate, to_narrow(v, number, True), to_narrow(v, number, False)) for v in (a, b)
    )
    return low.astype(np.uint16) | high.astype(np.uint16) << np.uint16(8)


def _wide_pair(number: NarrowFloat, a: Array) -> Array:
    pairs = np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, 2)
    return values_of(number, pairs).view(np.uint64)[..., 0]


def narrow_rows(arch: str) -> dict[str, Row]:
    """Conversions from and to the eight-bit floats of a chip.

    Those to eight bits change one half of the target, of which op_sel says which.
    """
    rows: dict[str, Row] = {}
    for kind in ("fp8", "bf8"):
        number = narrow_floats(arch)[kind]
        rows |= {
            f"v_cvt_pk_{kind}_f32": row(
                "f32 f32 u32",
                partial(_narrow, number),
                reads_mode=True,
                keeps_half=True,
                short=False,
            ),
            f"v_cvt_f32_{kind}": row("u8", partial(values_of, number)),
            f"v_cvt_pk_f32_{kind}": row("u16", partial(_wide_pair, number), slots=1),
        }
    return {**rows, **_scaled_rows()} if "mx" in assumed(arch).formats else rows


def _power(scale: Array) -> Array:
    """A scale's power of two, in float64: only the exponent counts."""
    exponent = scale.view(np.uint32) >> np.uint32(23) & np.uint32(0xFF)
    return np.ldexp(1.0, exponent.astype(np.int32) - 127)


def _unpacked(number: NarrowFloat, to: str, packed: Array, scale: Array) -> Array:
    """Two scaled numbers from bytes, or from the halves of one, side by side."""
    shifts = (0, 8) if number.bits == 8 else (0, 4)
    mask = packed.dtype.type((1 << number.bits) - 1)
    low, high = (
        (values_of(number, packed >> packed.dtype.type(shift) & mask) * _power(scale)).astype(
            np.float32
        )
        for shift in shifts
    )
    if to == "f32":
        return pair_of_words(low, high)
    if to == "f16":
        return pair_of_halves(low.astype(np.float16), high.astype(np.float16))
    return pair_of_halves(to_bfloat(low), to_bfloat(high))


def _scaled_narrow(number: NarrowFloat, a: Array, b: Array, scale: Array, mode: Array) -> Array:
    return _narrow(number, a / _power(scale), b / _power(scale), mode)


def _from_half(kind: str, packed: Array, high: bool) -> Array:
    """The numbers in one half of words, as f32."""
    bits = (packed >> np.uint32(16 * high) & np.uint32(0xFFFF)).astype(np.uint16)
    if kind == "f16":
        return bits.view(np.float16).astype(np.float32)
    return from_bfloat(bits)


def _scaled_narrow_halves(
    number: NarrowFloat, kind: str, packed: Array, scale: Array, mode: Array
) -> Array:
    low, high = (_from_half(kind, packed, half) for half in (False, True))
    return _scaled_narrow(number, low, high, scale, mode)


def _scaled_rows() -> dict[str, Row]:
    """CDNA4's conversions with a scale (CDNA4 ISA, VOP3)."""
    rows = {
        f"v_cvt_scalef32_pk_{to}_{kind}": row(
            f"{'u8' if kind == 'fp4' else 'u16'} f32",
            partial(_unpacked, OCP[kind], to),
            short=False,
            slots=1,
        )
        for to in ("f32", "f16", "bf16")
        for kind in ("fp8", "bf8", "fp4")
    }
    for kind in ("fp8", "bf8"):
        to_half = {"reads_mode": True, "keeps_half": True, "short": False}
        rows[f"v_cvt_scalef32_pk_{kind}_f32"] = row(
            "f32 f32 f32 u32", partial(_scaled_narrow, OCP[kind]), **to_half
        )
        for half in ("f16", "bf16"):
            rows[f"v_cvt_scalef32_pk_{kind}_{half}"] = row(
                "u32 f32 u32", partial(_scaled_narrow_halves, OCP[kind], half), **to_half
            )
    return rows
