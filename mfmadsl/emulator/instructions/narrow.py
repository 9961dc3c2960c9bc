"""Conversions from and to floats of eight bits, and with a scale to wider ones (CDNA3 and CDNA4
ISA, VOP1 and VOP3; CDNA4 ISA, section 7.3).

The scale is the exponent of a float of 32 bits. What is made wider is multiplied by it, what is
made narrower divided. FP16_OVFL, bit 23 of the mode, makes results of eight and of 16 bits stay
below infinity.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mfmadsl.emulator.instructions.number import (
    OCP,
    NarrowFloat,
    from_bfloat,
    narrow_floats,
    powers_of,
    to_bfloat,
    to_narrow,
    to_narrow_by_seed,
    values_of,
)
from mfmadsl.emulator.instructions.row import Row, row
from mfmadsl.emulator.machine.bits import (
    Array,
    Compute,
    Mask,
    pair_of_halves,
    pair_of_words,
)
from mfmadsl.model import assumed

MANTISSA_BITS = {"f32": 23, "f16": 10, "bf16": 7}

_BYTES = ("fp8", "bf8")
_TO_HALF = {"reads_mode": True, "part": 16, "short": False}
_TO_BYTE = {"reads_mode": True, "part": 8, "short": False}


def halves_as_floats(kind: str, bits: Array) -> Array:
    """The numbers, as f32, that bits of f16 or bf16 stand for."""
    return bits.view(np.float16).astype(np.float32) if kind == "f16" else from_bfloat(bits)


def halves_of(packed: Array) -> tuple[Array, Array]:
    """The low and the high 16 bits of words."""
    return packed.astype(np.uint16), (packed >> np.uint32(16)).astype(np.uint16)


def widened(values: Array, to: str, mode: Array) -> Array:
    """Numbers in float64 as f32, or as the bits of f16 or bf16."""
    single = values.astype(np.float32)
    if to == "f32":
        return single
    if to == "bf16":
        return to_bfloat(single)
    half = single.astype(np.float16)
    over = np.isinf(half) & np.isfinite(single) & _keeps_finite(mode)
    return np.where(over, np.copysign(np.finfo(np.float16).max, half), half).view(np.uint16)


def _keeps_finite(mode: Array) -> Mask:
    return mode >> np.uint32(23) & np.uint32(1) != 0


def _either(convert: Compute, mode: Array) -> Array:
    """What a function of whether it saturates makes, by FP16_OVFL."""
    keeps = _keeps_finite(mode)
    if keeps.all() or not keeps.any():
        return convert(saturate=bool(keeps.all()))
    return np.where(keeps, convert(saturate=True), convert(saturate=False))


def _bytes(number: NarrowFloat, a: Array, b: Array, mode: Array) -> Array:
    """Two numbers made bytes, side by side."""
    low, high = (_either(partial(to_narrow, v, number), mode) for v in (a, b))
    return low.astype(np.uint16) | high.astype(np.uint16) << np.uint16(8)


def _wide_pair(number: NarrowFloat, a: Array) -> Array:
    pairs = np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, 2)
    return values_of(number, pairs).view(np.uint64)[..., 0]


def _by_seed(number: NarrowFloat, a: Array, seed: Array, mode: Array) -> Array:
    return _either(partial(to_narrow_by_seed, a, seed, MANTISSA_BITS["f32"], number), mode)


def _between_subnormals(number: NarrowFloat, a: Array, *_: Array) -> Mask:
    """Whether a number is below the smallest normal one of a format, and none of it.

    The manual's function adds the seed where it stands to normal numbers, those of HIP's headers
    first move the number.
    """
    steps = np.ldexp(np.abs(a.astype(np.float64)), number.mantissa_bits + number.bias - 1)
    return (steps < 1 << number.mantissa_bits) & (steps != np.floor(steps))


def narrow_rows(arch: str) -> dict[str, Row]:
    """Conversions from and to the eight-bit floats of a chip.

    Those to eight bits change one half of the target, or a byte, of which op_sel says which.
    """
    rows: dict[str, Row] = {}
    for kind in _BYTES:
        number = narrow_floats(arch)[kind]
        rows |= {
            f"v_cvt_pk_{kind}_f32": row("f32 f32 u32", partial(_bytes, number), **_TO_HALF),
            f"v_cvt_f32_{kind}": row("u8", partial(values_of, number)),
            f"v_cvt_pk_f32_{kind}": row("u16", partial(_wide_pair, number), slots=1),
            f"v_cvt_sr_{kind}_f32": row(
                "f32 u32 u32",
                partial(_by_seed, number),
                undocumented=(
                    f"how random bits round a number between two of {kind} below the smallest "
                    "normal one",
                    partial(_between_subnormals, number),
                ),
                **_TO_BYTE,
            ),
        }
    return {**rows, **_scaled_rows()} if "mx" in assumed(arch).formats else rows


def _unpacked(number: NarrowFloat, to: str, packed: Array, scale: Array, mode: Array) -> Array:
    """Two scaled numbers from bytes, or from the halves of one, side by side."""
    shifts = (0, 8) if number.bits == 8 else (0, 4)
    mask = packed.dtype.type((1 << number.bits) - 1)
    codes = (packed >> packed.dtype.type(shift) & mask for shift in shifts)
    low, high = (_scaled_up(number, to, code, scale, mode) for code in codes)
    return pair_of_words(low, high) if to == "f32" else pair_of_halves(low, high)


def _scaled_up(number: NarrowFloat, to: str, code: Array, scale: Array, mode: Array) -> Array:
    return widened(values_of(number, code) * powers_of(scale), to, mode)


def _one_scaled_up(number: NarrowFloat, to: str, code: Array, scale: Array, mode: Array) -> Array:
    """As bits: denormals stay whatever the mode says, and there are no output modifiers."""
    value = _scaled_up(number, to, code, scale, mode)
    return value.view(np.uint32) if to == "f32" else value


def _scaled_down(number: NarrowFloat, a: Array, b: Array, scale: Array, mode: Array) -> Array:
    return _bytes(number, a / powers_of(scale), b / powers_of(scale), mode)


def _halves_scaled_down(
    number: NarrowFloat, kind: str, packed: Array, scale: Array, mode: Array
) -> Array:
    low, high = (halves_as_floats(kind, half) for half in halves_of(packed))
    return _scaled_down(number, low, high, scale, mode)


def _scaled_down_by_seed(
    number: NarrowFloat, kind: str, a: Array, seed: Array, scale: Array, mode: Array
) -> Array:
    values = (a if kind == "f32" else halves_as_floats(kind, a)) / powers_of(scale)
    return _either(partial(to_narrow_by_seed, values, seed, MANTISSA_BITS[kind], number), mode)


def _scaled_rows() -> dict[str, Row]:
    """CDNA4's conversions with a scale."""
    rows = {}
    for kind in (*_BYTES, "fp4"):
        for to in MANTISSA_BITS:
            rows[f"v_cvt_scalef32_pk_{to}_{kind}"] = row(
                f"{'u8' if kind == 'fp4' else 'u16'} f32 u32",
                partial(_unpacked, OCP[kind], to),
                reads_mode=True,
                short=False,
                slots=1,
            )
    for kind in _BYTES:
        number = OCP[kind]
        for to in ("f32", "f16"):
            more: dict[str, Any] = _TO_HALF if to == "f16" else {**_TO_HALF, "part": 0}
            compute = partial(_one_scaled_up, number, to)
            rows[f"v_cvt_scalef32_{to}_{kind}"] = row("u8 f32 u32", compute, **more)
        pair = row("f32 f32 f32 u32", partial(_scaled_down, number), **_TO_HALF)
        rows[f"v_cvt_scalef32_pk_{kind}_f32"] = pair
        for half in ("f16", "bf16"):
            rows[f"v_cvt_scalef32_pk_{kind}_{half}"] = row(
                "u32 f32 u32", partial(_halves_scaled_down, number, half), **_TO_HALF
            )
        for source in MANTISSA_BITS:
            kinds = f"{'f32' if source == 'f32' else 'x16'} u32 f32 u32"
            compute = partial(_scaled_down_by_seed, number, source)
            rows[f"v_cvt_scalef32_sr_{kind}_{source}"] = row(kinds, compute, **_TO_BYTE)
    return rows
