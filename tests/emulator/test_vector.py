"""Vector instructions against Python's integers and NumPy's floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mfmadsl.emulator.wave import Array
from tests.emulator.machine import executed, put, run, vector, wave

words = arrays(np.uint32, 64, elements=st.integers(0, 2**32 - 1))
M = 2**32


def signed(x: int, bits: int = 32) -> int:
    x %= 2**bits
    return x - 2**bits if x >> (bits - 1) else x


def permuted(a: int, b: int, selector: int) -> int:
    """v_perm_b32, byte by byte as the manual has it."""
    pair = (a << 32 | b).to_bytes(8, "little")
    out = []
    for choice in selector.to_bytes(4, "little"):
        if choice < 8:
            out.append(pair[choice])
        elif choice < 12:
            out.append(0xFF if pair[2 * (choice - 8) + 1] >> 7 else 0)
        else:
            out.append(0 if choice == 12 else 0xFF)
    return int.from_bytes(bytes(out), "little")


# mnemonic: what one lane computes, from unsigned words
INTEGERS: dict[str, Callable[..., int]] = {
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_not_b32": lambda a: ~a,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: signed(b) >> (a & 31),
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) % M << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: (a << (b & 31)) | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_bfe_u32": lambda a, b, c: (a >> (b & 31)) & ((1 << (c & 31)) - 1),
    "v_bfe_i32": lambda a, b, c: (
        signed((a >> (b & 31)) & ((1 << (c & 31)) - 1), c & 31) if c & 31 else 0
    ),
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_perm_b32": permuted,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: signed(a) * signed(b) >> 32,
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_hi_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_mul_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24),
    "v_mad_i32_i24": lambda a, b, c: signed(a, 24) * signed(b, 24) + c,
    "v_min_u32": min,
    "v_max_u32": max,
    "v_min_i32": lambda a, b: min(signed(a), signed(b)),
    "v_max_i32": lambda a, b: max(signed(a), signed(b)),
    "v_med3_i32": lambda a, b, c: sorted((signed(a), signed(b), signed(c)))[1],
    "v_add_u16": lambda a, b: (a + b) % 2**16,
    "v_sub_u16": lambda a, b: (a - b) % 2**16,
    "v_mul_lo_u16": lambda a, b: a * b % 2**16,
    "v_mad_u16": lambda a, b, c: (a * b + c) % 2**16,
    "v_mad_legacy_u16": lambda a, b, c: (a * b + c) % 2**16,
    "v_lshlrev_b16": lambda a, b: (b << (a & 15)) % 2**16,
    "v_lshrrev_b16": lambda a, b: b % 2**16 >> (a & 15),
}


@pytest.mark.parametrize("name", INTEGERS)
@given(words, words, words)
def test_integer_instructions(name: str, a: Array, b: Array, c: Array) -> None:
    expected = INTEGERS[name]
    count = expected.__code__.co_argcount if hasattr(expected, "__code__") else 2
    sources = (a, b, c)[:count]
    registers = {f"v{i + 1}": v for i, v in enumerate(sources)}
    found = vector(executed(f"{name} v0, {', '.join(registers)}", registers), 0)
    assert found.tolist() == [expected(*map(int, lane)) % M for lane in zip(*sources, strict=True)]


WIDE: dict[str, Callable[[int, int], int]] = {
    "v_lshlrev_b64": lambda a, b: b << (a & 63),
    "v_lshrrev_b64": lambda a, b: b >> (a & 63),
    "v_ashrrev_i64": lambda a, b: signed(b, 64) >> (a & 63),
}


@pytest.mark.parametrize("name", WIDE)
@given(words, arrays(np.uint64, 64, elements=st.integers(0, 2**64 - 1)))
def test_shifts_of_pairs(name: str, shift: Array, pair: Array) -> None:
    waves = executed(f"{name} v[0:1], v2, v[4:5]", {"v2": shift, "v[4:5]": pair})
    expected = [WIDE[name](int(a), int(b)) % 2**64 for a, b in zip(shift, pair, strict=True)]
    assert vector(waves, 0, np.uint64).tolist() == expected


@given(words, words, arrays(np.uint64, 64, elements=st.integers(0, 2**64 - 1)))
def test_wide_multiply_add_with_its_carry(a: Array, b: Array, c: Array) -> None:
    registers = {"v2": a, "v3": b, "v[4:5]": c}
    waves = executed("v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]", registers)
    totals = [int(x) * int(y) + int(z) for x, y, z in zip(a, b, c, strict=True)]
    assert vector(waves, 0, np.uint64).tolist() == [t % 2**64 for t in totals]
    mask = int(waves.scalar[106, 0]) | int(waves.scalar[107, 0]) << 32
    assert [mask >> lane & 1 for lane in range(64)] == [t >> 64 for t in totals]


@given(words, words, st.booleans())
def test_additions_chain_by_their_carries(a: Array, b: Array, subtract: bool) -> None:
    waves = wave()
    put(waves, {"v[0:1]": a.astype(np.uint64) << 16, "v[2:3]": b.astype(np.uint64)})
    low, high = ("sub", "subb") if subtract else ("add", "addc")
    run(waves, f"v_{low}_co_u32_e32 v4, vcc, v0, v2")
    run(waves, f"v_{high}_co_u32_e32 v5, vcc, v1, v3, vcc")
    x, y = a.astype(np.uint64) << 16, b.astype(np.uint64)
    assert (vector(waves, 4, np.uint64) == (x - y if subtract else x + y)).all()


floats = arrays(np.float32, 64, elements=st.floats(width=32, allow_nan=False))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v_add_f32", lambda a, b: a + b),
        ("v_sub_f32", lambda a, b: a - b),
        ("v_mul_f32", lambda a, b: a * b),
        ("v_max_f32", np.maximum),
        ("v_min_f32", np.minimum),
    ],
)
@given(floats, floats)
def test_float_instructions(name: str, expected: Callable[..., Array], a: Array, b: Array) -> None:
    with np.errstate(all="ignore"):
        found = vector(executed(f"{name} v0, v1, v2", {"v1": a, "v2": b}), 0, np.float32)
        np.testing.assert_array_equal(found, expected(a, b))


def test_source_modifiers() -> None:
    values = {"v1": np.full(64, -3, np.float32), "v2": np.full(64, 5, np.float32)}
    waves = executed("v_add_f32 v0, |v1|, -v2", values)
    assert (vector(waves, 0, np.float32) == -2).all()


def test_a_fused_multiply_add_rounds_once() -> None:
    a = np.full(64, 1 + 2**-12, np.float32)
    waves = executed("v_fma_f32 v0, v1, v1, v2", {"v1": a, "v2": np.full(64, -1, np.float32)})
    assert (vector(waves, 0, np.float32) == np.float32(2**-11 + 2**-24)).all()


def test_conversions() -> None:
    values = np.linspace(-70000, 70000, 64, dtype=np.float32)
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    waves = executed("v_cvt_f16_f32 v0, v1", {"v1": values})
    assert (waves.vector[0, 0].astype(np.uint16).view(np.float16) == halves).all()
    run(waves, "v_cvt_f32_f16 v2, v0")
    assert (vector(waves, 2, np.float32) == halves.astype(np.float32)).all()
    run(waves, "v_cvt_i32_f32 v3, v1")
    assert (vector(waves, 3, np.int32) == np.trunc(values)).all()
    put(waves, {"v1": np.array([np.nan, np.inf, -np.inf, 3e9] * 16, np.float32)})
    run(waves, "v_cvt_i32_f32 v3, v1")
    assert vector(waves, 3, np.int32)[:4].tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1]
    run(waves, "v_cvt_u32_f32 v3, v1")
    assert vector(waves, 3)[:4].tolist() == [0, 2**32 - 1, 0, 3_000_000_000]


def test_lanes_that_exec_switches_off_keep_their_values() -> None:
    waves = wave()
    put(waves, {"v0": np.arange(64, dtype=np.uint32), "exec": np.array(0xF0, np.uint64)})
    run(waves, "v_mov_b32_e32 v0, 99")
    lanes = np.arange(64)
    assert (vector(waves, 0) == np.where((lanes >= 4) & (lanes < 8), 99, lanes)).all()


@given(words, words)
def test_comparisons_and_the_choice_that_they_make(a: Array, b: Array) -> None:
    waves = wave()
    put(waves, {"v1": a, "v2": b})
    run(waves, "v_cmp_lt_u32_e32 vcc, v1, v2")
    run(waves, "v_cndmask_b32_e32 v3, v1, v2, vcc")
    assert (vector(waves, 3) == np.maximum(a, b)).all()
    run(waves, "v_cmp_gt_i32_e64 s[4:5], v1, v2")
    run(waves, "v_cndmask_b32_e64 v3, v1, v2, s[4:5]")
    assert (vector(waves, 3, np.int32) == np.minimum(a.view(np.int32), b.view(np.int32))).all()


def test_a_comparison_gives_zero_for_lanes_that_are_off() -> None:
    waves = wave()
    put(waves, {"exec": np.array(6, np.uint64), "vcc": np.array(2**64 - 1, np.uint64)})
    run(waves, "v_cmp_eq_u32_e32 vcc, v0, v0")
    assert waves.scalar[106:108, 0].tolist() == [6, 0]


@given(words, words, words, st.integers(0, 255))
def test_any_function_of_three_bits(a: Array, b: Array, c: Array, table: int) -> None:
    found = vector(
        executed(f"v_bitop3_b32 v0, v1, v2, v3 bitop3:{table:#x}", {"v1": a, "v2": b, "v3": c}), 0
    )
    bits = np.arange(32, dtype=np.uint32)
    rows = (a[:, None] >> bits & 1) << 2 | (b[:, None] >> bits & 1) << 1 | c[:, None] >> bits & 1
    expected = ((table >> rows & 1).astype(np.uint64) << bits).sum(axis=1)
    assert (found == expected).all()


def test_the_first_active_lane_is_read() -> None:
    waves = wave()
    put(waves, {"v0": np.arange(64, dtype=np.uint32) + 7, "exec": np.array(0xF0, np.uint64)})
    run(waves, "v_readfirstlane_b32 s4, v0")
    assert waves.scalar[4].tolist() == [11]


@given(words, words)
def test_sub_word_operands(a: Array, b: Array) -> None:
    found = vector(
        executed(
            "v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD "
            "src0_sel:WORD_1 src1_sel:BYTE_2",
            {"v1": a, "v2": b},
        ),
        0,
    )
    assert (found == (a >> 16) + (b >> 16 & 0xFF)).all()


def test_a_sub_word_result_may_preserve_the_rest() -> None:
    waves = executed(
        "v_or_b32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE "
        "src0_sel:BYTE_0 src1_sel:BYTE_0",
        {name: np.full(64, value, np.uint32) for name, value in
         (("v0", 0x11223344), ("v1", 0x0F), ("v2", 0xF0))},
    )  # fmt: skip
    assert vector(waves, 0)[0] == 0x1122FF44
