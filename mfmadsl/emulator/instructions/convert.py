"""Vector instructions that turn one number format into another (CDNA3 ISA, VOP1 and VOP3).

Those to and from floats of eight bits and fewer are in `narrow.py` and `block.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mfmadsl.emulator.instructions.number import from_bfloat, to_bfloat
from mfmadsl.emulator.instructions.row import Row, row
from mfmadsl.emulator.machine.bits import Array, Compute, pair_of_halves


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
    "v_cvt_f32_bf16": row("x16", from_bfloat),
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
