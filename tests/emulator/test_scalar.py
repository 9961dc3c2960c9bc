"""Scalar instructions against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.machine import executed, put, run, wave

word = st.integers(0, 2**32 - 1)
pair = st.integers(0, 2**64 - 1)
M, W = 2**32, 2**64


def signed(x: int, bits: int = 32) -> int:
    x %= 2**bits
    return x - 2**bits if x >> (bits - 1) else x


def overflows(x: int) -> bool:
    return not -(2**31) <= x < 2**31


def leading_zeros(x: int) -> int:
    return 32 - x.bit_length() if x else -1


def trailing_zeros(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else -1


# mnemonic: (result, condition code; None where it stays as it was)
TWO: dict[str, tuple[Callable[[int, int], int], Callable[[int, int], bool] | None]] = {
    "s_add_u32": (lambda a, b: a + b, lambda a, b: a + b >= M),
    "s_sub_u32": (lambda a, b: a - b, lambda a, b: b > a),
    "s_add_i32": (lambda a, b: a + b, lambda a, b: overflows(signed(a) + signed(b))),
    "s_sub_i32": (lambda a, b: a - b, lambda a, b: overflows(signed(a) - signed(b))),
    "s_mul_i32": (lambda a, b: a * b, None),
    "s_mul_hi_u32": (lambda a, b: a * b >> 32, None),
    "s_mul_hi_i32": (lambda a, b: signed(a) * signed(b) >> 32, None),
    "s_min_u32": (min, lambda a, b: a < b),
    "s_max_u32": (max, lambda a, b: a > b),
    "s_min_i32": (lambda a, b: min(signed(a), signed(b)), lambda a, b: signed(a) < signed(b)),
    "s_max_i32": (lambda a, b: max(signed(a), signed(b)), lambda a, b: signed(a) > signed(b)),
    "s_and_b32": (lambda a, b: a & b, lambda a, b: a & b != 0),
    "s_or_b32": (lambda a, b: a | b, lambda a, b: a | b != 0),
    "s_xor_b32": (lambda a, b: a ^ b, lambda a, b: a != b),
    "s_andn2_b32": (lambda a, b: a & ~b, lambda a, b: a & ~b != 0),
    "s_orn2_b32": (lambda a, b: a | ~b, lambda a, b: (a | ~b) % M != 0),
    "s_nand_b32": (lambda a, b: ~(a & b), lambda a, b: ~(a & b) % M != 0),
    "s_nor_b32": (lambda a, b: ~(a | b), lambda a, b: ~(a | b) % M != 0),
    "s_xnor_b32": (lambda a, b: ~(a ^ b), lambda a, b: ~(a ^ b) % M != 0),
    "s_lshl_b32": (lambda a, b: a << (b & 31), lambda a, b: (a << (b & 31)) % M != 0),
    "s_lshr_b32": (lambda a, b: a >> (b & 31), lambda a, b: a >> (b & 31) != 0),
    "s_ashr_i32": (lambda a, b: signed(a) >> (b & 31), lambda a, b: signed(a) >> (b & 31) != 0),
    "s_bfm_b32": (lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), None),
    "s_pack_ll_b32_b16": (lambda a, b: a & 0xFFFF | (b & 0xFFFF) << 16, None),
    "s_pack_lh_b32_b16": (lambda a, b: a & 0xFFFF | b >> 16 << 16, None),
    "s_pack_hh_b32_b16": (lambda a, b: a >> 16 | b >> 16 << 16, None),
    "s_lshl1_add_u32": (lambda a, b: (a << 1) + b, lambda a, b: (a << 1) + b >= M),
    "s_lshl2_add_u32": (lambda a, b: (a << 2) + b, lambda a, b: (a << 2) + b >= M),
    "s_lshl3_add_u32": (lambda a, b: (a << 3) + b, lambda a, b: (a << 3) + b >= M),
    "s_lshl4_add_u32": (lambda a, b: (a << 4) + b, lambda a, b: (a << 4) + b >= M),
}


@pytest.mark.parametrize("name", TWO)
@given(word, word, st.booleans())
def test_two_sources(name: str, a: int, b: int, scc: bool) -> None:
    result, condition = TWO[name]
    waves = wave()
    waves.scc[:] = scc
    put(waves, {"s1": np.uint32(a), "s2": np.uint32(b)})
    run(waves, f"{name} s0, s1, s2")
    assert int(waves.scalar[0, 0]) == result(a, b) % M
    assert bool(waves.scc[0]) == (scc if condition is None else condition(a, b))


@given(word, st.integers(0, 31), st.integers(0, 32))
def test_a_field_is_extracted(a: int, offset: int, width: int) -> None:
    control = np.uint32(offset | width << 16)
    waves = executed("s_bfe_u32 s0, s1, s2", {"s1": np.uint32(a), "s2": control})
    assert int(waves.scalar[0, 0]) == (a >> offset) & ((1 << width) - 1)


ONE: dict[str, tuple[Callable[[int], int], bool]] = {
    "s_mov_b32": (lambda a: a, False),
    "s_not_b32": (lambda a: ~a, True),
    "s_abs_i32": (lambda a: abs(signed(a)), True),
    "s_brev_b32": (lambda a: int(f"{a:032b}"[::-1], 2), False),
    "s_sext_i32_i16": (lambda a: signed(a, 16), False),
    "s_sext_i32_i8": (lambda a: signed(a, 8), False),
    "s_bcnt1_i32_b32": (lambda a: a.bit_count(), True),
    "s_ff1_i32_b32": (trailing_zeros, False),
    "s_flbit_i32_b32": (leading_zeros, False),
}


@pytest.mark.parametrize("name", ONE)
@given(word)
def test_one_source(name: str, a: int) -> None:
    result, sets_condition = ONE[name]
    waves = executed(f"{name} s0, s1", {"s1": np.uint32(a)})
    assert int(waves.scalar[0, 0]) == result(a) % M
    assert bool(waves.scc[0]) == (sets_condition and result(a) % M != 0)


PAIRS: dict[str, Callable[[int, int], int]] = {
    "s_lshl_b64": lambda a, b: a << (b & 63),
    "s_lshr_b64": lambda a, b: a >> (b & 63),
    "s_ashr_i64": lambda a, b: signed(a, 64) >> (b & 63),
}


@pytest.mark.parametrize("name", PAIRS)
@given(pair, word)
def test_shifts_of_pairs(name: str, a: int, b: int) -> None:
    values = {"s[2:3]": np.uint64(a), "s4": np.uint32(b)}
    waves = executed(f"{name} s[0:1], s[2:3], s4", values)
    found = int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32
    assert found == PAIRS[name](a, b) % W
    assert bool(waves.scc[0]) == (found != 0)


@given(pair, pair, st.booleans())
def test_additions_chain_by_the_condition_code(a: int, b: int, subtract: bool) -> None:
    waves = wave()
    put(waves, {"s[0:1]": np.uint64(a), "s[2:3]": np.uint64(b)})
    run(waves, f"{'s_sub_u32' if subtract else 's_add_u32'} s4, s0, s2")
    run(waves, f"{'s_subb_u32' if subtract else 's_addc_u32'} s5, s1, s3")
    found = int(waves.scalar[4, 0]) | int(waves.scalar[5, 0]) << 32
    total = a - b if subtract else a + b
    assert found == total % W
    assert bool(waves.scc[0]) == (total != found)


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


@pytest.mark.parametrize("relation", COMPARISONS)
@given(word, word, st.booleans())
def test_comparisons(relation: str, a: int, b: int, equal: bool) -> None:
    b = a if equal else b
    values = {"s1": np.uint32(a), "s2": np.uint32(b)}
    unsigned = executed(f"s_cmp_{relation}_u32 s1, s2", values)
    assert bool(unsigned.scc[0]) == COMPARISONS[relation](a, b)
    as_signed = executed(f"s_cmp_{relation}_i32 s1, s2", values)
    assert bool(as_signed.scc[0]) == COMPARISONS[relation](signed(a), signed(b))


@given(word, st.integers(0, 255))
def test_single_bits(a: int, position: int) -> None:
    values = {"s0": np.uint32(a), "s1": np.uint32(position)}
    bit = 1 << (position & 31)
    assert int(executed("s_bitset1_b32 s0, s1", values).scalar[0, 0]) == a | bit
    assert int(executed("s_bitset0_b32 s0, s1", values).scalar[0, 0]) == a & ~bit
    assert bool(executed("s_bitcmp1_b32 s0, s1", values).scc[0]) == bool(a & bit)
    assert bool(executed("s_bitcmp0_b32 s0, s1", values).scc[0]) == (not a & bit)


def test_constants_of_sixteen_bits_are_signed() -> None:
    assert int(executed("s_movk_i32 s0, 0x8000", {}).scalar[0, 0]) == 0xFFFF8000
    assert int(executed("s_addk_i32 s0, 0xffff", {"s0": np.uint32(5)}).scalar[0, 0]) == 4
    assert int(executed("s_mulk_i32 s0, 0xfffe", {"s0": np.uint32(5)}).scalar[0, 0]) == M - 10


@given(pair, pair)
def test_exec_is_saved_and_narrowed(mask: int, active: int) -> None:
    waves = executed(
        "s_and_saveexec_b64 s[0:1], s[2:3]",
        {"s[2:3]": np.uint64(mask), "exec": np.uint64(active)},
    )
    assert int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32 == active
    narrowed = waves.exec_mask()
    lanes = [True] * 64 if narrowed is None else narrowed[0].tolist()
    assert lanes == [bool(mask & active) and bool((mask & active) >> i & 1) for i in range(64)]
    assert bool(waves.scc[0]) == (mask & active != 0)


def test_a_choice_by_the_condition_code() -> None:
    waves = wave(2)
    waves.scc[:] = [True, False]
    put(waves, {"s1": np.uint32(7), "s2": np.uint32(9)})
    run(waves, "s_cselect_b32 s0, s1, s2")
    assert waves.scalar[0].tolist() == [7, 9]
    run(waves, "s_cselect_b64 vcc, -1, 0")
    assert waves.scalar[106].tolist() == [M - 1, 0]
