"""Packed instructions and dot products: several numbers a register."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.packed import MIXED, PAIRS_OF_F32, PAIRS_OF_HALVES
from tests.emulator.assembler import accepted
from tests.emulator.instructions.manual.bits import is_nan, rounded
from tests.emulator.instructions.manual.edges import sample
from tests.emulator.instructions.manual.floats import FLOATS
from tests.emulator.instructions.manual.integers import INTEGERS, SATURATING
from tests.emulator.instructions.manual.modifiers import clamped_float
from tests.emulator.waves import executed, vector

MODELS = {**INTEGERS, **FLOATS}
PAIRS = {"v[2:3]": np.array([[3, 5]], np.float32).repeat(64, 0).view(np.uint64)[:, 0]}
PAIRS["v[4:5]"] = np.array([[10, 20]], np.float32).repeat(64, 0).view(np.uint64)[:, 0]


def result(code: str) -> list[float]:
    waves = executed(code, PAIRS)
    return [float(vector(waves, i, np.float32)[17]) for i in (0, 1)]


def test_each_half_with_its_own() -> None:
    assert result("v_pk_add_f32 v[0:1], v[2:3], v[4:5]") == [13, 25]
    assert result("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]") == [30, 100]
    assert result("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[4:5]") == [40, 120]
    assert set(PAIRS_OF_F32) == {"v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"}


def test_halves_can_be_chosen_and_negated() -> None:
    chosen = "v_pk_add_f32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,0]"
    assert result(chosen) == [15, 13]
    assert result("v_pk_add_f32 v[0:1], v[2:3], v[4:5] neg_lo:[1,0] neg_hi:[0,1]") == [7, -15]


def test_a_move_takes_a_word_of_each_source() -> None:
    assert result("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]") == [3, 20]
    assert result("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]") == [5, 10]


def test_a_constant_is_the_low_word() -> None:
    """As LLVM writes one for both; no manual says what the high word of it is."""
    assert result("v_pk_mul_f32 v[0:1], v[2:3], 2.0 op_sel_hi:[1,0]") == [6, 10]
    with pytest.raises(EmulationError, match="unknown instruction"):
        result("v_pk_mul_f32 v[0:1], v[2:3], 2.0")


def test_words_are_clamped() -> None:
    nan = np.array([[np.nan, -3]], np.float32).repeat(64, 0).view(np.uint64)[:, 0]
    waves = executed("v_pk_add_f32 v[0:1], v[2:3], v[2:3] clamp", {"v[2:3]": nan})
    assert [vector(waves, i, np.float32)[0] for i in (0, 1)] == [0, 0]


CONSTANTS = ("1", "-1", "64", "-16", "0.5", "-4.0")


def constant_word(text: str) -> int:
    """A constant as a pair of halves: an integer of 32 bits, or a half with 0 above it."""
    return rounded(float(text), "f16") if "." in text else int(text) % 2**32


@dataclass(frozen=True)
class Packed:
    """Which halves make the low and the high result, and what is done to them."""

    select: tuple[tuple[int, ...], tuple[int, ...]]
    negate: tuple[tuple[int, ...], tuple[int, ...]]
    clamp: bool
    constant: str
    place: int

    def line(self, name: str, count: int) -> str:
        sources = [f"v{i + 2}" for i in range(count)]
        if self.constant:
            sources[self.place] = self.constant
        text = f"{name} v0, {', '.join(sources)}"
        for key, flags in zip(("op_sel", "op_sel_hi"), self.select, strict=True):
            text += f" {key}:[{','.join(map(str, flags))}]"
        for key, flags in zip(("neg_lo", "neg_hi"), self.negate, strict=True):
            text += f" {key}:[{','.join(map(str, flags))}]" if any(flags) else ""
        return text + " clamp" * self.clamp

    def expected(self, name: str, kind: str, words: list[int]) -> list[int]:
        """Both results; each is what the instruction for one of it gives (see `manual`)."""
        scalar = name.replace("pk_", "")
        model = SATURATING[scalar] if self.clamp and kind != "f16" else MODELS[scalar]
        if self.constant:
            words = [constant_word(self.constant) if i == self.place else w
                     for i, w in enumerate(words)]  # fmt: skip
        results = []
        for halves, signs in zip(self.select, self.negate, strict=True):
            parts = [word >> 16 * half & 0xFFFF for word, half in zip(words, halves, strict=True)]
            parts = [part ^ sign << 15 for part, sign in zip(parts, signs, strict=True)]
            value = model(*parts) % 2**16
            results.append(clamped_float(value, kind) if self.clamp and kind == "f16" else value)
        return results


def packed_forms(kind: str, count: int, generator: random.Random) -> list[Packed]:
    def flags(chance: float) -> tuple[int, ...]:
        return tuple(int(generator.random() < chance) for _ in range(count))

    return [
        Packed(
            (flags(0.5), flags(0.5)),
            (flags(0.3 * (i % 3 == 0)), flags(0.3 * (i % 3 == 0))),
            i % 4 == 1,
            generator.choice(CONSTANTS) if i % 2 else "",
            generator.randrange(count),
        )
        for i in range(40)
    ]


@pytest.fixture(scope="module")
def legal() -> dict[str, bool]:
    lines = [
        form.line(name, len(row.kinds))
        for name, row in PAIRS_OF_HALVES.items()
        for form in packed_forms(row.kinds[0], len(row.kinds), random.Random(name))
    ]
    return dict(zip(lines, accepted(lines, "gfx950"), strict=True))


def test_a_pair_of_products_is_added_to_the_target() -> None:
    halves = [np.arange(128) % 7 - 3, np.arange(128) % 5, np.arange(128) % 11]
    a, b, c = (half.astype(np.float16) for half in halves)
    registers = {f"v{i}": v.view(np.uint32) for i, v in ((2, a), (3, b), (0, c))}
    found = vector(executed("v_pk_fmac_f16 v0, v2, v3", registers), 0)
    assert (found == (a * b + c).view(np.uint32)).all()
    for line in ("v_pk_fmac_f16 v0, v2, 1.0", "v_pk_fmac_f16 v0, v2, v3 clamp"):
        with pytest.raises(EmulationError):
            executed(line, registers)


@pytest.mark.parametrize("name", sorted(PAIRS_OF_HALVES))
def test_two_halves(name: str, legal: dict[str, bool]) -> None:
    kind, count = PAIRS_OF_HALVES[name].kinds[0], len(PAIRS_OF_HALVES[name].kinds)
    generator, tested = random.Random(f"values of {name}"), 0
    for form in packed_forms(kind, count, random.Random(name)):
        line = form.line(name, count)
        halves = [sample(kind, generator, 128) for _ in range(count)]
        words = [[low | high << 16 for low, high in zip(v[:64], v[64:], strict=True)]
                 for v in halves]  # fmt: skip
        registers = {f"v{i + 2}": np.array(v, np.uint32) for i, v in enumerate(words)}
        try:
            found = vector(executed(line, registers), 0)
        except EmulationError:
            saturates = kind == "f16" or name.replace("pk_", "") in SATURATING
            integer = kind != "f16" and (any(map(any, form.negate)) or "." in form.constant)
            assert not legal[line] or integer or (form.clamp and not saturates), line
            continue
        assert legal[line], line
        tested += 1
        for lane in range(64):
            expected = form.expected(name, kind, [word[lane] for word in words])
            for shift, value in zip((0, 16), expected, strict=True):
                got = int(found[lane]) >> shift & 0xFFFF
                if kind == "f16" and is_nan(value, kind):
                    assert is_nan(got, kind), line
                else:
                    assert got == value, (line, lane)
    assert tested > 9


@pytest.mark.parametrize("name", sorted(MIXED))
def test_mixed_sources(name: str) -> None:
    """v_fma_mix: 3 (a half) * 5 (the other) + 0.5 (a float)."""
    pair = np.array([3, 5], np.float16).view(np.uint32).repeat(64)
    registers = {
        "v0": np.full(64, 0xAAAABBBB, np.uint32),
        "v2": pair,
        "v3": np.full(64, 0.5, np.float32),
    }
    code = f"{name} v0, v2, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]"
    found = vector(executed(code, registers), 0)[5]
    half = int(np.float16(15.5).view(np.uint16))
    expected = {
        "mix_f32": int(np.float32(15.5).view(np.uint32)),
        "mixlo_f16": 0xAAAA0000 | half,
        "mixhi_f16": half << 16 | 0xBBBB,
    }
    assert found == expected[MIXED[name]]


@pytest.mark.parametrize("name", sorted(MIXED))
def test_mixed_sources_are_negated_and_clamped(name: str) -> None:
    values = {"v0": np.zeros(64, np.uint32), "v2": np.full(64, -3, np.float32)}
    code = f"{name} v0, -v2, |v2|, 1.0"
    expected = {"mix_f32": 0x41200000, "mixlo_f16": 0x4900, "mixhi_f16": 0x49000000}
    assert vector(executed(code, values), 0)[1] == expected[MIXED[name]]
    one = {"mix_f32": 0x3F800000, "mixlo_f16": 0x3C00, "mixhi_f16": 0x3C000000}
    assert vector(executed(f"{code} clamp", values), 0)[1] == one[MIXED[name]]


@pytest.mark.parametrize(
    "code",
    [
        "v_pk_add_f16 v0, -v2, v3",
        "v_pk_add_u16 v0, v2, v3 neg_lo:[1,0]",
        "v_pk_add_u16 v0, v2, v3 op_sel:[2,0]",
        "v_pk_add_u16 v0, v2, v3 op_sel:[1]",
        "v_pk_max_u16 v0, v2, v3 clamp",
        "v_pk_add_f32 v[0:1], v2, v[4:5]",
        "v_pk_mov_b32 v[0:1], v[2:3], v[4:5] clamp",
        "v_fma_mix_f32 v0, v2, v3, v4 neg_lo:[1,0,0]",
        "v_fma_mix_f32 v0, v2, v3, v4 op_sel:[1,0,0]",
    ],
)
def test_what_has_no_meaning_is_refused(code: str) -> None:
    with pytest.raises(EmulationError, match="unknown instruction"):
        executed(code, {})
