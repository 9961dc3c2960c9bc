"""Conversions from and to floats of eight bits and fewer, on each chip's own formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mfmadsl.emulator.instructions.vector import vector_rows
from tests.emulator.waves import put, run, vector, wave

DTYPES = {
    ("gfx942", "fp8"): ml_dtypes.float8_e4m3fnuz,
    ("gfx942", "bf8"): ml_dtypes.float8_e5m2fnuz,
    ("gfx950", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx950", "bf8"): ml_dtypes.float8_e5m2,
}
WIDE = ("f32", "f16", "bf16")
CODES = np.arange(256, dtype=np.uint8)
CASES = pytest.mark.parametrize(("arch", "kind"), DTYPES)


@CASES
def test_all_codes_to_floats(arch: str, kind: str) -> None:
    expected = CODES.view(DTYPES[arch, kind]).astype(np.float32)
    words = CODES.reshape(64, 4).copy().view(np.uint32)[:, 0]
    for byte in range(4):
        waves = wave()
        put(waves, {"v1": words})
        run(waves, f"v_cvt_f32_{kind}_sdwa v0, v1 src0_sel:BYTE_{byte}", arch)
        np.testing.assert_array_equal(vector(waves, 0, np.float32), expected[byte::4])
    for half in range(2):
        waves = wave()
        put(waves, {"v1": words})
        run(waves, f"v_cvt_pk_f32_{kind}_sdwa v[2:3], v1 src0_sel:WORD_{half}", arch)
        for i in range(2):
            found = vector(waves, 2 + i, np.float32)
            np.testing.assert_array_equal(found, expected[2 * half + i :: 4])


@CASES
@pytest.mark.parametrize("saturate", [False, True])
def test_floats_to_codes(arch: str, kind: str, saturate: bool) -> None:
    """Nearest, ties to even; ml_dtypes is the witness, but for what is too large.

    With FP16_OVFL that is the largest number, on gfx950 for infinity, too (CDNA4 ISA, section 7.3).
    """
    dtype = DTYPES[arch, kind]
    generator = np.random.default_rng(8)
    numbers = CODES.view(dtype).astype(np.float32)
    values = np.concatenate([
        generator.standard_normal(24) * 4.0 ** generator.integers(-8, 7, 24),
        np.array([0, 1e9, -1e9, np.nan, np.inf, -np.inf, 1e-9, -1e-9]),
        (numbers[:64:2] + numbers[1:65:2]) / 2,
    ]).astype(np.float32)  # fmt: skip
    waves = wave()
    put(waves, {"v0": np.full(64, 0xABCD0000, np.uint32), "v1": values, "v2": values[::-1].copy()})
    run(waves, f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), {int(saturate)}", arch)
    run(waves, f"v_cvt_pk_{kind}_f32 v0, v1, v2", arch)
    word = vector(waves, 0)
    assert (word >> 16 == 0xABCD).all()
    largest = float(ml_dtypes.finfo(dtype).max)
    with np.errstate(all="ignore"):
        clipped = np.clip(values, -largest, largest) if saturate else values
        infinite = np.isinf(values) & (not saturate or arch == "gfx942")
        expected = np.where(infinite, values, clipped).astype(dtype)
    found = (word & 0xFF).astype(np.uint8).view(dtype)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    swapped = (word >> 8 & 0xFF).astype(np.uint8).view(dtype)
    np.testing.assert_array_equal(swapped.astype(np.float32), expected[::-1].astype(np.float32))


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_the_other_half_can_be_written(kind: str) -> None:
    waves = wave()
    put(waves, {"v0": np.full(64, 0x1234, np.uint32), "v1": np.full(64, 1, np.float32)})
    run(waves, f"v_cvt_pk_{kind}_f32 v0, v1, v1 op_sel:[0,0,1]", "gfx950")
    one = {"fp8": 0x38, "bf8": 0x3C}[kind]
    assert vector(waves, 0)[0] == one << 24 | one << 16 | 0x1234


@pytest.mark.parametrize("kind", ["fp8", "bf8", "fp4"])
@pytest.mark.parametrize("to", ["f32", "f16", "bf16"])
def test_scaled_numbers_are_unpacked(kind: str, to: str) -> None:
    """2 and -1, times the scale 4, whose mantissa does not count."""
    two, minus_one = {"fp8": (0x40, 0xB8), "bf8": (0x40, 0xBC), "fp4": (0x4, 0xA)}[kind]
    packed = two | minus_one << (4 if kind == "fp4" else 8)
    waves = wave()
    put(waves, {"v1": np.full(64, packed, np.uint32), "v2": np.full(64, 5.5, np.float32)})
    target = "v[4:5]" if to == "f32" else "v4"
    run(waves, f"v_cvt_scalef32_pk_{to}_{kind} {target}, v1, v2", "gfx950")
    if to == "f32":
        found = [vector(waves, 4 + i, np.float32)[7] for i in range(2)]
    else:
        halves = np.array([vector(waves, 4)[7]]).view(np.uint16)
        dtype = np.float16 if to == "f16" else ml_dtypes.bfloat16
        found = halves.view(dtype).astype(float).tolist()
    assert found == [8, -4]


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_numbers_are_scaled_down_and_packed(kind: str) -> None:
    waves = wave()
    put(waves, {"v1": np.full(64, 8, np.float32), "v2": np.full(64, -4, np.float32)})
    run(waves, f"v_cvt_scalef32_pk_{kind}_f32 v0, v1, v2, 4.0", "gfx950")
    expected = {"fp8": 0xB840, "bf8": 0xBC40}[kind]
    assert vector(waves, 0)[0] == expected


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_halves_are_scaled_down_and_packed(kind: str, half: str) -> None:
    """8 and -4, times 1/4, into one half of a register; the other half stays."""
    dtype = np.float16 if half == "f16" else ml_dtypes.bfloat16
    pair = np.array([8, -4], dtype).view(np.uint32).repeat(64)
    waves = wave()
    put(waves, {"v0": np.full(64, 0x12345678, np.uint32), "v1": pair})
    run(waves, f"v_cvt_scalef32_pk_{kind}_{half} v0, v1, 4.0 op_sel:[0,0,1]", "gfx950")
    assert vector(waves, 0)[0] == {"fp8": 0xB840_5678, "bf8": 0xBC40_5678}[kind]


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
@pytest.mark.parametrize("to", ["f32", "f16"])
def test_single_codes_are_scaled(kind: str, to: str) -> None:
    """All codes, from each byte, into either half, by scales at both ends of what there is."""
    words = CODES.reshape(64, 4).copy().view(np.uint32)[:, 0]
    numbers = CODES.view(DTYPES["gfx950", kind]).astype(np.float64)
    exponents = (-127, 0, 127) if to == "f32" else (-20, 0, 12)
    for byte, exponent in ((b, e) for b in range(4) for e in exponents):
        with np.errstate(over="ignore"):
            expected = (numbers * 2.0**exponent).astype(to.replace("f", "float"))[byte::4]
        for half in range(1 if to == "f32" else 2):
            scale = np.uint32(0x8000_0000 | exponent + 127 << 23 | 0x65_4321)
            waves = wave()
            put(waves, {"v0": np.full(64, 0xABCD_ABCD, np.uint32), "v1": words,
                        "v2": np.full(64, scale)})  # fmt: skip
            flags = f"op_sel:[{byte & 1},{byte >> 1},{half}]"
            run(waves, f"v_cvt_scalef32_{to}_{kind} v0, v1, v2 {flags}", "gfx950")
            if to == "f32":
                found = vector(waves, 0, np.float32)
            else:
                found = (vector(waves, 0) >> 16 * half).astype(np.uint16).view(np.float16)
                assert (vector(waves, 0) >> 16 * (1 - half) & 0xFFFF == 0xABCD).all()
            np.testing.assert_array_equal(found, expected)
            signed = ~np.isnan(found)
            assert (np.signbit(found) == np.signbit(expected))[signed].all()


@pytest.mark.parametrize("form", ["f32_fp8", "f16_bf8", "pk_bf16_fp4", "pk_f32_bf8", "pk_fp8_f16",
                                  "sr_bf8_bf16"])  # fmt: skip
def test_the_scale_255_is_no_number(form: str) -> None:
    """As in E8M0; infinity and NaN are the floats with that exponent."""
    waves = wave()
    put(waves, {"v1": np.full(64, 0x3C00_3C00, np.uint32), "v2": np.full(64, np.inf, np.float32),
                "v3": np.full(64, 7, np.uint32)})  # fmt: skip
    target = "v[4:5]" if "pk_f32" in form else "v4"
    seed = "v3, " if "sr" in form else ""
    run(waves, f"v_cvt_scalef32_{form} {target}, v1, {seed}v2", "gfx950")
    to = form.removeprefix("pk_").removeprefix("sr_").split("_")[0]
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
             "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}[to]  # fmt: skip
    found = vector(waves, 4).view(dtype).astype(np.float32)
    assert np.isnan(found[0])


@pytest.mark.parametrize(("ovfl", "largest"), [(0, np.inf), (1, 65504.0)])
def test_halves_that_are_too_large_stay_finite_where_the_mode_says_so(
    ovfl: int, largest: float
) -> None:
    """An infinity is one all the same (CDNA4 ISA, MODE: FP16_OVFL)."""
    waves = wave()
    codes = np.array([448, -448, np.nan, 1], ml_dtypes.float8_e4m3fn).view(np.uint32)
    put(waves, {"v1": np.full(64, codes), "v2": np.full(64, 0xFC7C_FC7C, np.uint32)})
    run(waves, f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), {ovfl}", "gfx950")
    run(waves, "v_cvt_scalef32_pk_f16_fp8 v0, v1, 0x46000000", "gfx950")  # by 2**13
    assert vector(waves, 0)[:1].view(np.float16).tolist() == [largest, -largest]
    run(waves, "v_cvt_scalef32_f16_fp8 v0, v1, 0x46000000 op_sel:[1,0,0]", "gfx950")
    assert vector(waves, 0)[:1].view(np.float16)[0] == -largest
    run(waves, "v_cvt_scalef32_pk_f16_bf8 v0, v2, 1.0", "gfx950")
    assert vector(waves, 0)[:1].view(np.float16).tolist() == [np.inf, -np.inf]


def test_every_narrow_conversion_is_tested() -> None:
    """Here, or where random bits round (`test_by_seed`)."""
    narrow = {
        name for name in vector_rows("gfx950") if any(k in name for k in ("fp8", "bf8", "fp4"))
    }
    tested = {
        f"v_cvt_{form}"
        for kind in ("fp8", "bf8")
        for form in (
            *(f"pk_{kind}_f32", f"f32_{kind}", f"pk_f32_{kind}", f"sr_{kind}_f32"),
            *(f"scalef32_{more}_{kind}_{of}" for more in ("pk", "sr") for of in WIDE),
            *(f"scalef32_{to}_{kind}" for to in ("f32", "f16")),
        )
    }
    tested |= {f"v_cvt_scalef32_pk_{to}_{kind}" for to in WIDE for kind in ("fp8", "bf8", "fp4")}
    assert tested == narrow
