"""Conversions that random bits round, on each chip's formats, against exact numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.number import FNUZ, OCP, NarrowFloat, to_narrow_by_seed
from tests.emulator.instructions.manual.seeds import MANTISSA_BITS, by_seed, next_seed
from tests.emulator.waves import put, run, vector, wave

DTYPES = {
    ("gfx942", "fp8"): ml_dtypes.float8_e4m3fnuz,
    ("gfx942", "bf8"): ml_dtypes.float8_e5m2fnuz,
    ("gfx950", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx950", "bf8"): ml_dtypes.float8_e5m2,
}
NARROW = pytest.mark.parametrize(("arch", "kind"), DTYPES)
SOURCES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
MANTISSA = {"fp8": 3, "bf8": 2, "fp4": 1, "fp6": 3, "bf6": 2}
SEEDS = np.random.default_rng(7).integers(0, 2**32, 64, dtype=np.uint32)


def grid(dtype: type) -> list[Fraction]:
    """The numbers of a format from 0 up, and the one that would come next."""
    values = np.arange(128, dtype=np.uint8).view(dtype).astype(np.float64)
    finite = [Fraction(v) for v in values[np.isfinite(values)]]
    return [*finite, 2 * finite[-1] - finite[-2]]


def drawn(dtype: type, source: str, scale: float = 1.0) -> npt.NDArray[np.float64]:
    """Numbers of a wide format at all magnitudes of a narrow one, times a scale, of both signs."""
    generator = np.random.default_rng(3)
    info = ml_dtypes.finfo(dtype)
    low, high = np.log2(float(info.smallest_subnormal)) - 2, np.log2(float(info.max))
    values = 2 ** generator.uniform(low, high, 64) * np.where(np.arange(64) % 3, 1, -1)
    values[:2] = 0.0, -0.0
    return (values * scale).astype(SOURCES[source]).astype(np.float64)


def bits(values: npt.NDArray[np.float64], source: str) -> npt.NDArray[np.uint32]:
    """Numbers in registers; of those of 16 bits the upper halves are noise."""
    narrow = values.astype(SOURCES[source])
    if source == "f32":
        return narrow.view(np.uint32)
    return narrow.view(np.uint16).astype(np.uint32) | np.uint32(0x7FC1_0000)


def codes(values: npt.NDArray[np.float64], kind: str, source: str, dtype: type) -> list[int]:
    finite, sign = grid(dtype), 0x80
    found = []
    for value, seed in zip(values, SEEDS, strict=True):
        code = by_seed(Fraction(abs(value)), int(seed), source, finite, MANTISSA[kind])
        unsigned = "fnuz" in dtype.__name__ and code == 0
        found.append(code | (sign if np.signbit(value) and not unsigned else 0))
    return found


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
@pytest.mark.parametrize("end", [0, -1, 1])
def test_scaled_numbers_become_bytes(kind: str, source: str, end: int) -> None:
    """Into each of the four bytes; the others stay, and of the scale the exponent counts alone."""
    exponent = (4 * end - 5 if kind == "bf8" else 5 * end) if source == "f16" else 100 * end
    dtype, scale = DTYPES["gfx950", kind], 2.0**exponent
    values = drawn(dtype, source, scale)
    expected = np.array(codes(values / scale, kind, source, dtype), np.uint32)
    old = np.uint32(0x1234_5678)
    for byte in range(4):
        waves = wave()
        put(waves, {"v0": np.full(64, old), "v1": bits(values, source), "v2": SEEDS,
                    "v3": np.full(64, -1.5 * scale, np.float32)})  # fmt: skip
        flags = f"op_sel:[0,0,{byte & 1},{byte >> 1}]"
        run(waves, f"v_cvt_scalef32_sr_{kind}_{source} v0, v1, v2, v3 {flags}", "gfx950")
        kept = old & ~np.uint32(0xFF << 8 * byte)
        np.testing.assert_array_equal(vector(waves, 0), kept | expected << np.uint32(8 * byte))


@NARROW
def test_numbers_become_bytes_without_a_scale(arch: str, kind: str) -> None:
    """All that are not between two of the numbers below the smallest normal one."""
    dtype = DTYPES[arch, kind]
    smallest = float(ml_dtypes.finfo(dtype).smallest_normal)
    values = drawn(dtype, "f32")
    steps = np.abs(values) / float(ml_dtypes.finfo(dtype).smallest_subnormal)
    values = np.where(np.abs(values) < smallest, np.rint(steps) * smallest / 2 ** MANTISSA[kind],
                      values)  # fmt: skip
    waves = wave()
    put(waves, {"v0": np.full(64, 0xABCD_EF01, np.uint32), "v1": bits(-values, "f32"), "v2": SEEDS})
    run(waves, f"v_cvt_sr_{kind}_f32 v0, -v1, v2 op_sel:[0,0,0,1]", arch)
    expected = np.array(codes(values, kind, "f32", dtype), np.uint32)
    np.testing.assert_array_equal(vector(waves, 0), expected << np.uint32(16) | 0xAB00_EF01)


@NARROW
def test_without_a_scale_the_manual_and_hip_differ_on_small_numbers(arch: str, kind: str) -> None:
    """What they differ on is refused, where a lane that is on has it."""
    between = 1.5 * float(ml_dtypes.finfo(DTYPES[arch, kind]).smallest_subnormal)
    values = np.where(np.arange(64) == 5, between, 1.0).astype(np.float32)
    waves = wave()
    put(waves, {"v1": values})
    with pytest.raises(EmulationError, match=f"do not agree .* two of {kind} .*lane 5"):
        run(waves, f"v_cvt_sr_{kind}_f32 v0, v1, v2", arch)
    put(waves, {"exec": np.full(1, ~np.uint64(1 << 5), np.uint64)})
    run(waves, f"v_cvt_sr_{kind}_f32 v0, v1, v2", arch)
    assert vector(waves, 0)[4]
    assert not vector(waves, 0)[5]


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_too_much_is_infinite_or_the_largest(kind: str, saturate: bool) -> None:
    """CDNA4 ISA, section 7.3; what is rounded down to the largest number is that."""
    largest = float(ml_dtypes.finfo(DTYPES["gfx950", kind]).max)
    values = np.array([np.inf, -np.inf, np.nan, 1e9, largest * 1.01, largest * 1.01], np.float32)
    seeds = np.array([0, 0, 0, 0, 0, 0xFFFF_FFFF], np.uint32)
    waves = wave()
    put(waves, {"v1": np.resize(values, 64), "v2": np.resize(seeds, 64)})
    run(waves, f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), {int(saturate)}", "gfx950")
    run(waves, f"v_cvt_scalef32_sr_{kind}_f32 v0, v1, v2, 1.0", "gfx950")
    found = vector(waves, 0)[:6].astype(np.uint8).view(DTYPES["gfx950", kind]).astype(np.float32)
    much = largest if saturate else {"fp8": np.nan, "bf8": np.inf}[kind]
    np.testing.assert_array_equal(found, [much, -much, np.nan, much, largest, much])


@pytest.mark.parametrize("kind", ["fp4", "fp6", "bf6", "fp8", "bf8"])
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_as_many_seeds_round_up_as_the_fraction_says(kind: str, source: str) -> None:
    """All seeds that differ, for every number of 16 bits between two normal ones of the format."""
    number, dropped = OCP[kind], MANTISSA_BITS[source] - MANTISSA[kind]
    seeds = np.arange(1 << dropped, dtype=np.uint32) << np.uint32(32 - dropped)
    between = 1 + np.arange(1, 1 << dropped) / (1 << dropped) / (1 << MANTISSA[kind])
    low = to_narrow_by_seed(np.ones(1), seeds[:1], MANTISSA_BITS[source], number, saturate=True)
    found = to_narrow_by_seed(between[:, None], seeds, MANTISSA_BITS[source], number, saturate=True)
    up = (found - low).astype(int)
    assert set(up.reshape(-1).tolist()) == {0, 1}
    assert up.sum(axis=1).tolist() == list(range(1, 1 << dropped))


def test_of_small_numbers_what_lies_below_their_place_is_cut_off() -> None:
    """Between two numbers below the smallest normal one: 63.75/128 of the way counts as 63."""
    seeds = np.arange(128, dtype=np.uint32) << np.uint32(25)
    values = np.full(128, 2.0**-9 * (1 + 255 / 512))
    found = to_narrow_by_seed(values, seeds, 10, OCP["fp8"], saturate=True)
    assert found.tolist() == [1] * 65 + [2] * 63


@pytest.mark.parametrize(("kind", "number"), [("fp8", OCP["fp8"]), ("bf8", FNUZ["bf8"])])
def test_of_f32_as_many_seeds_round_up_as_the_fraction_says(kind: str, number: NarrowFloat) -> None:
    dropped = 23 - MANTISSA[kind]
    seeds = np.arange(1 << dropped, dtype=np.uint32) << np.uint32(32 - dropped)
    for part in (1, 0x54321, (1 << dropped) - 1):
        value = np.array([1 + part / 2**23])
        found = to_narrow_by_seed(value, seeds, 23, number, saturate=True)
        values, counts = np.unique(found, return_counts=True)
        assert len(values) == 2
        assert values[1] - values[0] == 1
        assert counts[1] == part


def test_the_seed_of_the_next_number_goes_through_all_but_zero() -> None:
    """The period of v_prng_b32 is 2**32 - 1, as the manual says: its matrix has that order."""
    waves = wave()
    states = np.append(np.uint32(1) << np.arange(32, dtype=np.uint32), SEEDS[:32])
    put(waves, {"v1": states})
    run(waves, "v_prng_b32 v0, v1", "gfx950")
    assert vector(waves, 0).tolist() == [next_seed(int(x)) for x in states]
    step = [int(x) for x in vector(waves, 0)[:32]]  # what becomes of each bit

    def apply(columns: list[int], state: int) -> int:
        total = 0
        for i, column in enumerate(columns):
            total ^= column if state >> i & 1 else 0
        return total

    def power(exponent: int) -> list[int]:
        found, square = [1 << i for i in range(32)], step
        while exponent:
            if exponent & 1:
                found = [apply(square, x) for x in found]
            square, exponent = [apply(square, x) for x in square], exponent >> 1
        return found

    identity, period = [1 << i for i in range(32)], 2**32 - 1
    assert power(period) == identity
    assert all(power(period // prime) != identity for prime in (3, 5, 17, 257, 65537))


def test_grids_are_those_of_the_formats() -> None:
    """What the expected codes of this file count in has all numbers, in order."""
    for dtype in DTYPES.values():
        assert all(a < b for a, b in pairwise(grid(dtype)))
        assert float(grid(dtype)[-2]) == float(ml_dtypes.finfo(dtype).max)
