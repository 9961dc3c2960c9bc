"""Conversions of several floats of four and six bits at once, against ml_dtypes."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.block import BLOCKS
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.operand import MODE
from tests.emulator.instructions.manual.seeds import by_seed, next_seed
from tests.emulator.waves import put, run, vector, wave

DTYPES = {
    "fp4": ml_dtypes.float4_e2m1fn,
    "fp6": ml_dtypes.float6_e2m3fn,
    "bf6": ml_dtypes.float6_e3m2fn,
}
WIDE = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
MANTISSA = {"fp4": 1, "fp6": 3, "bf6": 2}
OF_SIX_BITS = pytest.mark.parametrize("kind", ["fp6", "bf6"])
ALL_WIDE = pytest.mark.parametrize("wide", WIDE)
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8]


def numbers(kind: str) -> Floats:
    """The numbers of a format, by their codes."""
    bits = 4 if kind == "fp4" else 6
    values: Floats = np.arange(1 << bits, dtype=np.uint8).view(DTYPES[kind]).astype(np.float64)
    return values


def awkward(kind: str, wide: str, scale: float, count: int) -> Floats:
    """(64, count): all numbers of a format, those between two, and too large ones, times a scale.

    No two of a lane are alike where it has place for that, and each lane begins elsewhere.
    """
    positive = numbers(kind)[: len(numbers(kind)) // 2]
    middles = (positive[1:] + positive[:-1]) / 2
    beside = np.concatenate([middles * (1 - 2**-7), middles * (1 + 2**-7)])
    large = positive[-1] * np.array([1 + 2**-6, 1.07, 2])
    some = np.concatenate([positive, middles, beside, large])
    both = np.stack([some, -some], axis=1).reshape(-1)
    places = 5 * np.arange(64)[:, None] + 7 * np.arange(count)
    values: Floats = (both[places % len(both)] * scale).astype(WIDE[wide]).astype(np.float64)
    return values


def nearest(values: Floats, kind: str) -> Codes:
    largest = float(ml_dtypes.finfo(DTYPES[kind]).max)
    return np.clip(values, -largest, largest).astype(DTYPES[kind]).view(np.uint8)


def put_numbers(waves: Waves, first: int, values: Floats, wide: str) -> None:
    """(64, count) numbers in registers from `first` on."""
    words = np.ascontiguousarray(values.astype(WIDE[wide])).view(np.uint32)
    for i in range(words.shape[1]):
        put(waves, {f"v{first + i}": words[:, i].copy()})


def put_scale(waves: Waves, register: int, exponent: int) -> None:
    """2**exponent, negative and with a mantissa, neither of which counts."""
    word = np.uint32(0x8000_0000 | (exponent + 127) << 23 | 0x12_3456)
    put(waves, {f"v{register}": np.full(64, word)})


def six_bits(waves: Waves, first: int) -> npt.NDArray[np.int64]:
    """(64, 32): the codes in six registers, as one number of 192 bits of which each has six."""
    words = [vector(waves, first + i).tolist() for i in range(6)]
    columns = zip(*words, strict=True)
    lanes = [sum(word << 32 * i for i, word in enumerate(lane)) for lane in columns]
    return np.array([[lane >> 6 * i & 63 for i in range(32)] for lane in lanes])


def put_six_bits(waves: Waves, first: int, codes: npt.NDArray[np.int64]) -> None:
    lanes = [sum(int(code) << 6 * i for i, code in enumerate(lane)) for lane in codes]
    for i in range(6):
        word = np.array([lane >> 32 * i & 0xFFFF_FFFF for lane in lanes], np.uint32)
        put(waves, {f"v{first + i}": word})


def read_numbers(waves: Waves, first: int, count: int, wide: str) -> Floats:
    size = np.dtype(WIDE[wide]).itemsize
    words = np.stack([vector(waves, first + i) for i in range(count * size // 4)], axis=1)
    values: Floats = np.ascontiguousarray(words).view(WIDE[wide]).astype(np.float64)
    return values


def exponents(wide: str) -> tuple[int, ...]:
    """Scales at both ends, so that scaled numbers are still numbers of a format."""
    return (0, -6, 10) if wide == "f16" else (0, -124, 122)


@OF_SIX_BITS
@ALL_WIDE
def test_numbers_become_six_bits(kind: str, wide: str) -> None:
    for exponent in exponents(wide):
        values = awkward(kind, wide, 2.0**exponent, 32)
        waves = wave()
        put_scale(waves, 60, exponent)
        if wide == "f32":  # of two operands, whose numbers take turns
            put_numbers(waves, 10, values[:, ::2], wide)
            put_numbers(waves, 26, values[:, 1::2], wide)
            name = f"v_cvt_scalef32_2xpk16_{kind}_f32"
            run(waves, f"{name} v[0:5], v[10:25], v[26:41], v60", "gfx950")
        else:
            put_numbers(waves, 10, values, wide)
            run(waves, f"v_cvt_scalef32_pk32_{kind}_{wide} v[0:5], v[10:25], v60", "gfx950")
        np.testing.assert_array_equal(six_bits(waves, 0), nearest(values / 2.0**exponent, kind))


@OF_SIX_BITS
@ALL_WIDE
def test_six_bits_become_numbers(kind: str, wide: str) -> None:
    """All 64 codes, by scales at which some results are denormal, too large, or neither."""
    codes = (np.arange(64)[:, None] + 2 * np.arange(32)) % 64
    for exponent in (0, -18, 13) if wide == "f16" else (0, -127, 125, 127):
        waves = wave()
        put_six_bits(waves, 40, codes)
        put_scale(waves, 60, exponent)
        run(waves, f"v_cvt_scalef32_pk32_{wide}_{kind} v[0:{31 if wide == 'f32' else 15}], "
                   "v[40:45], v60", "gfx950")  # fmt: skip
        with np.errstate(over="ignore"):
            expected = (numbers(kind)[codes] * 2.0**exponent).astype(WIDE[wide])
        found = read_numbers(waves, 0, 32, wide)
        np.testing.assert_array_equal(found, expected.astype(np.float64))
        np.testing.assert_array_equal(np.signbit(found), codes >= 32)


def test_halves_stay_finite_where_the_mode_says_so() -> None:
    """CDNA4 ISA, MODE: FP16_OVFL makes results of 16 bits that are too large the largest number."""
    waves = wave()
    put_six_bits(waves, 40, np.full((64, 32), 31))
    put_scale(waves, 60, 14)
    for ovfl, expected in ((1, 65504), (0, np.inf)):
        run(waves, f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), {ovfl}", "gfx950")
        run(waves, "v_cvt_scalef32_pk32_f16_fp6 v[0:15], v[40:45], v60", "gfx950")
        assert (read_numbers(waves, 0, 32, "f16") == expected).all()


def test_a_scale_that_is_no_number_makes_all_nan() -> None:
    waves = wave()
    put_six_bits(waves, 40, np.zeros((64, 32), np.int64))
    put_scale(waves, 60, 128)
    for wide, last in (("f32", 31), ("f16", 15), ("bf16", 15)):
        run(waves, f"v_cvt_scalef32_pk32_{wide}_bf6 v[0:{last}], v[40:45], v60", "gfx950")
        assert np.isnan(read_numbers(waves, 0, 32, wide)).all()


@ALL_WIDE
def test_two_numbers_become_a_byte(wide: str) -> None:
    """In each of the four bytes; the others stay."""
    old = np.uint32(0x1234_5678)
    for byte, exponent in enumerate((0, *exponents(wide))):
        values = awkward("fp4", wide, 2.0**exponent, 2)
        waves = wave()
        put_scale(waves, 60, exponent)
        put(waves, {"v0": np.full(64, old)})
        put_numbers(waves, 1, values, wide)
        sources = "v1, v2" if wide == "f32" else "v1"
        flags = f"op_sel:[0,0,{byte & 1},{byte >> 1}]"
        run(waves, f"v_cvt_scalef32_pk_fp4_{wide} v0, {sources}, v60 {flags}", "gfx950")
        low, high = nearest(values / 2.0**exponent, "fp4").astype(np.uint32).T
        kept = old & ~np.uint32(0xFF << 8 * byte)
        expected = kept | (low | high << np.uint32(4)) << np.uint32(8 * byte)
        np.testing.assert_array_equal(vector(waves, 0), expected)


def test_single_numbers_can_be_negated() -> None:
    waves = wave()
    run(waves, "v_cvt_scalef32_pk_fp4_f32 v0, -1.0, |-2.0|, 1.0", "gfx950")
    assert (vector(waves, 0) == 0x4A).all()


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("kind", DTYPES)
def test_each_number_has_its_seed(kind: str, wide: str) -> None:
    """The second of several has what v_prng_b32 makes of the first's, and so on."""
    count, exponent = 2 if kind == "fp4" else 32, exponents(wide)[1]
    values = awkward(kind, wide, 2.0**exponent, count)
    seeds = np.random.default_rng(5).integers(0, 2**32, 64, dtype=np.uint32)
    finite = [Fraction(x) for x in numbers(kind)[: len(numbers(kind)) // 2]]
    finite.append(2 * finite[-1] - finite[-2])
    largest, sign = len(finite) - 2, len(finite) - 1
    expected = np.zeros((64, count), np.int64)
    for lane, first in enumerate(map(int, seeds)):
        seed = first
        for i, value in enumerate(values[lane]):
            scaled = Fraction(abs(value)) / Fraction(2) ** exponent
            place = by_seed(scaled, seed, wide, finite, MANTISSA[kind])
            expected[lane, i] = min(place, largest) | (sign if np.signbit(value) else 0)
            seed = next_seed(seed)
    waves = wave()
    put_scale(waves, 60, exponent)
    put(waves, {"v61": seeds})
    put_numbers(waves, 10, values, wide)
    last = 9 + count * np.dtype(WIDE[wide]).itemsize // 4
    source = "v10" if last == 10 else f"v[10:{last}]"
    name = f"v_cvt_scalef32_sr_{'pk' if count == 2 else 'pk32'}_{kind}_{wide}"
    run(waves, f"{name} {'v0' if count == 2 else 'v[0:5]'}, {source}, v61, v60", "gfx950")
    if count == 2:
        found = np.stack([vector(waves, 0) & 15, vector(waves, 0) >> 4], axis=1)
    else:
        found = six_bits(waves, 0)
    np.testing.assert_array_equal(found, expected)


LINES = {
    "v_cvt_scalef32_pk_fp4_f32 v0, v10, v11, v60": 2,
    "v_cvt_scalef32_pk_fp4_f16 v0, v10, v60": 1,
    "v_cvt_scalef32_pk_fp4_bf16 v0, v10, v60": 1,
    "v_cvt_scalef32_sr_pk_fp4_f32 v0, v[10:11], v61, v60": 2,
    "v_cvt_scalef32_sr_pk_fp4_f16 v0, v10, v61, v60": 1,
    "v_cvt_scalef32_sr_pk_fp4_bf16 v0, v10, v61, v60": 1,
    "v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[10:25], v[26:41], v60": 32,
    "v_cvt_scalef32_2xpk16_bf6_f32 v[0:5], v[10:25], v[26:41], v60": 32,
    **{f"v_cvt_scalef32_pk32_{kind}_{half} v[0:5], v[10:25], v60": 16
       for kind in ("fp6", "bf6") for half in ("f16", "bf16")},
    **{f"v_cvt_scalef32_sr_pk32_{kind}_{half} v[0:5], v[10:25], v61, v60": 16
       for kind in ("fp6", "bf6") for half in ("f16", "bf16")},
    **{f"v_cvt_scalef32_sr_pk32_{kind}_f32 v[0:5], v[10:41], v61, v60": 32
       for kind in ("fp6", "bf6")},
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_infinity_becomes_the_largest_and_nan_is_refused(line: str) -> None:
    """NaN only where a lane that is on has it; a scale that is no number makes NaN, too."""
    kind = next(k for k in DTYPES if f"_{k}_" in line)
    infinite = 0x7F80_0000 if "_f32 " in line else 0x7C00_FC00 if "_f16 " in line else 0x7F80_FF80
    waves = wave()
    for i in range(LINES[line]):
        put(waves, {f"v{10 + i}": np.full(64, infinite, np.uint32)})
    run(waves, line, "gfx950")
    sizes = vector(waves, 0) & np.uint32(0x77 if kind == "fp4" else 0b11111_011111)
    assert (sizes == (0x77 if kind == "fp4" else 0b11111_011111)).all()
    last = f"v{9 + LINES[line]}"
    put(waves, {last: np.where(np.arange(64) == 5, np.uint32(0x7FFF_7FFF), np.uint32(0))})
    with pytest.raises(EmulationError, match=f"do not agree on what NaN becomes in {kind}.*lane 5"):
        run(waves, line, "gfx950")
    put(waves, {"exec": np.full(1, ~np.uint64(1 << 5), np.uint64)})
    run(waves, line, "gfx950")
    put_scale(waves, 60, 128)
    with pytest.raises(EmulationError, match="do not agree on what NaN becomes"):
        run(waves, line, "gfx950")


def test_denormals_are_those_that_the_mode_keeps() -> None:
    """Of f32 by MODE, narrower ones always (CDNA4 ISA, section 7.3)."""
    tiny = np.full((64, 32), 2.0**-128)
    for keeps in (0, 1):
        waves = wave()
        put_scale(waves, 60, -126)
        put_numbers(waves, 10, tiny, "f32")
        waves.scalar[MODE] = 0xE0 | keeps << 4
        run(waves, "v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[10:25], v[26:41], v60", "gfx950")
        assert (six_bits(waves, 0) == (2 if keeps else 0)).all()
        put_numbers(waves, 10, tiny, "bf16")
        run(waves, "v_cvt_scalef32_pk32_fp6_bf16 v[0:5], v[10:25], v60", "gfx950")
        assert (six_bits(waves, 0) == 2).all()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("v_cvt_scalef32_pk32_fp6_f16 v[10:15], v[10:25], v60", "written before it is read"),
        ("v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[30:35], v60", "written before it is read"),
        ("v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[32:37], v31", "written before it is read"),
        ("v_cvt_scalef32_2xpk16_fp6_f32 v[26:31], v[10:25], v[26:41], v60",
         "written before it is read"),
        ("v_cvt_scalef32_sr_pk32_fp6_f16 v[0:5], v[10:25], v5, v60", "written before it is read"),
        ("v_cvt_scalef32_sr_pk_fp4_f32 v11, v[10:11], v61, v60", "written before it is read"),
        ("v_cvt_scalef32_sr_pk_fp4_f16 v60, v10, v61, v60", "written before it is read"),
        ("v_cvt_scalef32_pk32_fp6_f16 v[0:5], -v[10:25], v60", "unknown instruction"),
        ("v_cvt_scalef32_pk_fp4_f16 v0, |v1|, v60", "neg and abs"),
        ("v_cvt_scalef32_pk32_fp6_f16 v[0:5], v[10:24], v60", "not 16 registers"),
        ("v_cvt_scalef32_pk32_f32_fp6 v[0:30], v[32:37], v60", "not 32 registers"),
        ("v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[10:25], v60", "it takes 4 operands, not 3"),
        ("v_cvt_scalef32_pk_fp4_f16 v0, v1, v60 op_sel:[1,0,0,0]", "a byte of the target"),
        ("v_cvt_scalef32_pk32_fp6_f16 v[0:5], v[10:25], v60 op_sel:[0,0,1]", "op_sel"),
        ("v_cvt_scalef32_pk_fp4_f16 v0, v1, v60 clamp", "clamp"),
    ],
)  # fmt: skip
def test_what_is_refused(line: str, reason: str) -> None:
    with pytest.raises(EmulationError, match=reason):
        run(wave(), line, "gfx950")


def test_every_block_is_tested() -> None:
    narrowing = {line.split()[0] for line in LINES}
    widening = {f"v_cvt_scalef32_pk32_{to}_{kind}" for to in WIDE for kind in ("fp6", "bf6")}
    assert narrowing | widening == set(BLOCKS)
