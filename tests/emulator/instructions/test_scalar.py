"""Scalar instructions against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.mode_register import MODE_INSTRUCTIONS
from mfmadsl.emulator.instructions.scalar import SAVE_EXEC, SCALAR, SCALAR_COMPARE
from mfmadsl.emulator.text.operand import EXEC, M0, MODE
from tests.emulator.instructions.manual.bits import signed
from tests.emulator.waves import executed, put, run, wave

word = st.integers(0, 2**32 - 1)
pair = st.integers(0, 2**64 - 1)
M, W = 2**32, 2**64


def overflows(x: int) -> bool:
    return not -(2**31) <= x < 2**31


def leading_zeros(x: int, bits: int = 32) -> int:
    return bits - x.bit_length() if x else -1


def trailing_zeros(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else -1


def sign_run(x: int, bits: int) -> int:
    return leading_zeros(x ^ (2**bits - 1) if x >> (bits - 1) else x, bits)


def field(x: int, control: int, bits: int, extend: bool) -> int:
    """s_bfe: bits from control[5:0] on, as many as control[22:16] says, and no more than there."""
    low, width = control & (bits - 1), min(control >> 16 & 127, bits)
    value = (signed(x, bits) if extend else x) >> low & ((1 << width) - 1)
    return signed(value, width) if extend else value


def quads(x: int, bits: int) -> int:
    return sum(1 << i for i in range(bits // 4) if x >> 4 * i & 15)


def whole_quads(x: int, bits: int) -> int:
    return sum(15 << 4 * i for i in range(bits // 4) if x >> 4 * i & 15)


# mnemonic: (result, condition code; None where it stays as it was)
TWO: dict[str, tuple[Callable[[int, int], int], Callable[[int, int], bool] | None]] = {
    "s_add_u32": (lambda a, b: a + b, lambda a, b: a + b >= M),
    "s_sub_u32": (lambda a, b: a - b, lambda a, b: b > a),
    "s_add_i32": (lambda a, b: a + b, lambda a, b: overflows(signed(a) + signed(b))),
    "s_sub_i32": (lambda a, b: a - b, lambda a, b: overflows(signed(a) - signed(b))),
    "s_absdiff_i32": (
        lambda a, b: abs(signed(signed(a) - signed(b))),
        lambda a, b: a != b,
    ),
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


FIELDS = {"s_bfe_u32": 32, "s_bfe_i32": 32, "s_bfe_u64": 64, "s_bfe_i64": 64}


@pytest.mark.parametrize("name", FIELDS)
@given(pair, st.integers(0, 63), st.integers(0, 127))
def test_a_field_is_extracted(name: str, a: int, offset: int, width: int) -> None:
    bits = FIELDS[name]
    a %= 2**bits
    control = np.uint32(offset | width << 16)
    values = {"s[2:3]": np.uint64(a), "s4": control}
    source, target = ("s[2:3]", "s[0:1]") if bits == 64 else ("s2", "s0")
    waves = executed(f"{name} {target}, {source}, s4", values)
    expected = field(a, int(control), bits, "_i" in name) % 2**bits
    assert (int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32) % 2**bits == expected
    assert bool(waves.scc[0]) == (expected != 0)


WIDE: dict[str, tuple[Callable[[int], int], bool | None]] = {
    "s_mov_b64": (lambda a: a, None),
    "s_not_b64": (lambda a: ~a, True),
    "s_brev_b64": (lambda a: int(f"{a:064b}"[::-1], 2), None),
    "s_bcnt0_i32_b64": (lambda a: 64 - a.bit_count(), True),
    "s_bcnt1_i32_b64": (lambda a: a.bit_count(), True),
    "s_ff0_i32_b64": (lambda a: trailing_zeros(a ^ W - 1), None),
    "s_ff1_i32_b64": (trailing_zeros, None),
    "s_flbit_i32_b64": (lambda a: leading_zeros(a, 64), None),
    "s_flbit_i32_i64": (lambda a: sign_run(a, 64), None),
    "s_quadmask_b64": (lambda a: quads(a, 64), True),
    "s_wqm_b64": (lambda a: whole_quads(a, 64), True),
}


@pytest.mark.parametrize("name", WIDE)
@given(pair | st.integers(0, 3) | st.integers(W - 3, W - 1))
def test_one_source_of_a_pair(name: str, a: int) -> None:
    result, sets_condition = WIDE[name]
    narrow = "_i32_" in name
    waves = executed(f"{name} {'s0' if narrow else 's[0:1]'}, s[2:3]", {"s[2:3]": np.uint64(a)})
    found = int(waves.scalar[0, 0]) | (0 if narrow else int(waves.scalar[1, 0]) << 32)
    expected = result(a) % (M if narrow else W)
    assert found == expected
    if sets_condition:
        assert bool(waves.scc[0]) == (expected != 0)


BITWISE: dict[str, Callable[[int, int], int]] = {
    "s_and_b64": lambda a, b: a & b,
    "s_or_b64": lambda a, b: a | b,
    "s_xor_b64": lambda a, b: a ^ b,
    "s_andn2_b64": lambda a, b: a & ~b,
    "s_orn2_b64": lambda a, b: a | ~b,
    "s_nand_b64": lambda a, b: ~(a & b),
    "s_nor_b64": lambda a, b: ~(a | b),
    "s_xnor_b64": lambda a, b: ~(a ^ b),
}


@pytest.mark.parametrize("name", BITWISE)
@given(pair, pair)
def test_two_sources_of_pairs(name: str, a: int, b: int) -> None:
    waves = executed(
        f"{name} s[0:1], s[2:3], s[4:5]", {"s[2:3]": np.uint64(a), "s[4:5]": np.uint64(b)}
    )
    found = int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32
    assert found == BITWISE[name](a, b) % W
    assert bool(waves.scc[0]) == (found != 0)


@given(word, word)
def test_a_mask_of_a_pair(width: int, offset: int) -> None:
    waves = executed("s_bfm_b64 s[0:1], s2, s3", {"s2": np.uint32(width), "s3": np.uint32(offset)})
    found = int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32
    assert found == (((1 << (width & 63)) - 1) << (offset & 63)) % W


ONE: dict[str, tuple[Callable[[int], int], bool]] = {
    "s_quadmask_b32": (lambda a: quads(a, 32), True),
    "s_wqm_b32": (lambda a: whole_quads(a, 32), True),
    "s_mov_b32": (lambda a: a, False),
    "s_not_b32": (lambda a: ~a, True),
    "s_abs_i32": (lambda a: abs(signed(a)), True),
    "s_brev_b32": (lambda a: int(f"{a:032b}"[::-1], 2), False),
    "s_sext_i32_i16": (lambda a: signed(a, 16), False),
    "s_sext_i32_i8": (lambda a: signed(a, 8), False),
    "s_bcnt0_i32_b32": (lambda a: 32 - a.bit_count(), True),
    "s_bcnt1_i32_b32": (lambda a: a.bit_count(), True),
    "s_ff0_i32_b32": (lambda a: trailing_zeros(a ^ M - 1), False),
    "s_flbit_i32": (lambda a: sign_run(a, 32), False),
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


@given(pair, st.integers(0, 255))
def test_single_bits_of_pairs(a: int, position: int) -> None:
    values = {"s[0:1]": np.uint64(a), "s2": np.uint32(position)}
    bit = 1 << (position & 63)
    for name, expected in (("s_bitset1_b64", a | bit), ("s_bitset0_b64", a & ~bit)):
        waves = executed(f"{name} s[0:1], s2", values)
        assert int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32 == expected


@given(word)
def test_each_bit_twice(a: int) -> None:
    waves = executed("s_bitreplicate_b64_b32 s[0:1], s2", {"s2": np.uint32(a)})
    expected = sum(3 << 2 * i for i in range(32) if a >> i & 1)
    assert int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32 == expected


@given(pair, pair)
def test_exec_is_written_to_a_register_too(source: int, active: int) -> None:
    values = {"s[2:3]": np.uint64(source), "exec": np.uint64(active)}
    for name, expected in (("andn1", ~source & active), ("andn2", source & ~active)):
        waves = executed(f"s_{name}_wrexec_b64 s[0:1], s[2:3]", values)
        for low in (0, EXEC):
            assert int(waves.scalar[low, 0]) | int(waves.scalar[low + 1, 0]) << 32 == expected
        assert bool(waves.scc[0]) == (expected != 0)


def test_registers_that_m0_chooses_are_moved() -> None:
    """Each wave has an M0 of its own."""
    waves = wave(2)
    put(waves, {f"s{i}": np.uint32(100 + i) for i in range(32)})
    waves.scalar[M0] = [4, 6]
    run(waves, "s_movrels_b32 s40, s10")
    assert waves.scalar[40].tolist() == [114, 116]
    run(waves, "s_movreld_b64 s[20:21], s[2:3]")
    assert waves.scalar[24:28].T.tolist() == [[102, 103, 126, 127], [124, 125, 102, 103]]
    run(waves, "s_movrels_b64 s[42:43], s[10:11]")
    assert waves.scalar[42:44].T.tolist() == [[114, 115], [116, 117]]
    for m0 in (100, 3):  # beyond the last one; not the first of a pair
        waves.scalar[M0] = m0
        with pytest.raises(EmulationError, match=f"M0 leads to s{10 + m0}"):
            run(waves, "s_movrels_b64 s[42:43], s[10:11]")


def test_constants_of_sixteen_bits_are_signed() -> None:
    assert int(executed("s_movk_i32 s0, 0x8000", {}).scalar[0, 0]) == 0xFFFF8000
    assert int(executed("s_addk_i32 s0, 0xffff", {"s0": np.uint32(5)}).scalar[0, 0]) == 4
    assert int(executed("s_mulk_i32 s0, 0xfffe", {"s0": np.uint32(5)}).scalar[0, 0]) == M - 10


SAVED: dict[str, Callable[[int, int], int]] = {
    "and": lambda s, e: s & e,
    "or": lambda s, e: s | e,
    "xor": lambda s, e: s ^ e,
    "andn1": lambda s, e: ~s & e,
    "andn2": lambda s, e: s & ~e,
    "orn1": lambda s, e: ~s | e,
    "orn2": lambda s, e: s | ~e,
    "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e),
    "xnor": lambda s, e: ~(s ^ e),
}


@pytest.mark.parametrize("operation", SAVED)
@given(pair, pair)
def test_exec_is_saved_and_changed(operation: str, mask: int, active: int) -> None:
    waves = executed(
        f"s_{operation}_saveexec_b64 s[0:1], s[2:3]",
        {"s[2:3]": np.uint64(mask), "exec": np.uint64(active)},
    )
    assert int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32 == active
    expected = SAVED[operation](mask, active) % W
    narrowed = waves.exec_mask()
    lanes = [True] * 64 if narrowed is None else narrowed[0].tolist()
    assert lanes == [bool(expected >> i & 1) for i in range(64)]
    assert bool(waves.scc[0]) == (expected != 0)


def test_a_choice_by_the_condition_code() -> None:
    waves = wave(2)
    waves.scc[:] = [True, False]
    put(waves, {"s1": np.uint32(7), "s2": np.uint32(9)})
    run(waves, "s_cselect_b32 s0, s1, s2")
    assert waves.scalar[0].tolist() == [7, 9]
    run(waves, "s_cselect_b64 vcc, -1, 0")
    assert waves.scalar[106].tolist() == [M - 1, 0]


@pytest.mark.parametrize("scc", [True, False])
def test_conditional_moves(scc: bool) -> None:
    cases: dict[str, dict[str, Any]] = {
        "s_cmov_b32 s0, s2": {"s0": np.uint32(1), "s2": np.uint32(7)},
        "s_cmov_b64 s[0:1], s[2:3]": {"s[0:1]": np.uint64(1), "s[2:3]": np.uint64(7)},
        "s_cmovk_i32 s0, 0x7": {"s0": np.uint32(1)},
    }
    for code, values in cases.items():
        waves = wave()
        waves.scc[:] = scc
        put(waves, values)
        run(waves, code)
        assert waves.scalar[0, 0] == (7 if scc else 1), code


@pytest.mark.parametrize("relation", COMPARISONS)
@given(word, st.integers(0, 2**16 - 1))
def test_comparisons_with_a_constant(relation: str, a: int, k: int) -> None:
    values = {"s1": np.uint32(a)}
    unsigned = executed(f"s_cmpk_{relation}_u32 s1, {k:#x}", values)
    assert bool(unsigned.scc[0]) == COMPARISONS[relation](a, k)
    as_signed = executed(f"s_cmpk_{relation}_i32 s1, {k:#x}", values)
    assert bool(as_signed.scc[0]) == COMPARISONS[relation](signed(a), signed(k, 16))


@given(pair, pair, st.booleans(), st.integers(0, 255))
def test_comparisons_of_pairs(a: int, b: int, equal: bool, position: int) -> None:
    b = a if equal else b
    values = {"s[2:3]": np.uint64(a), "s[4:5]": np.uint64(b), "s6": np.uint32(position)}
    assert bool(executed("s_cmp_eq_u64 s[2:3], s[4:5]", values).scc[0]) == (a == b)
    assert bool(executed("s_cmp_lg_u64 s[2:3], s[4:5]", values).scc[0]) == (a != b)
    bit = bool(a >> (position & 63) & 1)
    assert bool(executed("s_bitcmp1_b64 s[2:3], s6", values).scc[0]) == bit
    assert bool(executed("s_bitcmp0_b64 s[2:3], s6", values).scc[0]) != bit


def test_the_mode_register_is_written_and_read_in_part() -> None:
    waves = wave()
    waves.scalar[MODE] = 0
    run(waves, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1")
    run(waves, "s_getreg_b32 s0, hwreg(HW_REG_MODE, 20, 5)")
    assert waves.scalar[0, 0] == 8
    put(waves, {"s1": np.uint32(6)})
    run(waves, "s_setreg_b32 hwreg(HW_REG_MODE, 12, 4), s1")
    run(waves, "s_getreg_b32 s0, hwreg(HW_REG_MODE)")
    assert waves.scalar[0, 0] == 1 << 23 | 6 << 12


@pytest.mark.parametrize(
    "code",
    [
        "s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s1",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 30, 5), 1",
    ],
)
def test_the_mode_that_instructions_were_made_ready_for_does_not_change(code: str) -> None:
    run(wave(), "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3")  # denormals, as they are kept
    with pytest.raises(EmulationError, match="unknown instruction"):
        run(wave(), code)


@pytest.mark.parametrize(
    "code",
    [
        "s_add_u32 s0, -s1, s2",
        "s_add_u32 s0, s[2:3], s2",
        "s_add_u32 s0, v1, s2",
        "s_add_u32 v0, s1, s2",
        "s_add_u32 s0, s1, 0x1ffffffff",
        "s_and_b64 s0, s[2:3], s[4:5]",
        "s_and_b64 s[0:1], s[2:3], 1.5",
        "s_mov_b32 s0, src_scc",
        "s_movk_i32 s0, 0x12345",
        "s_cmpk_eq_u32 s0, -1",
        "s_and_saveexec_b64 s0, s[2:3]",
    ],
)
def test_operands_of_another_type_are_refused(code: str) -> None:
    with pytest.raises(EmulationError, match="unknown instruction"):
        run(wave(), code)


def test_literals_are_extended_to_pairs() -> None:
    """By the sign to a signed type, else by zeros (LLVM, `isOperandLegal`)."""
    for code, expected in (
        ("s_mov_b64 s[0:1], 0x80000000", 0x80000000),
        ("s_or_b64 s[0:1], 0, -100", 0xFFFFFF9C),
        ("s_mov_b64 s[0:1], -16", 2**64 - 16),
        ("s_ashr_i64 s[0:1], 0x80000000, 4", 0xFFFFFFFF_F8000000),
        ("s_mov_b64 s[0:1], 1.0", 0x3FF00000_00000000),
    ):
        waves = executed(code, {})
        assert int(waves.scalar[0, 0]) | int(waves.scalar[1, 0]) << 32 == expected


def test_every_scalar_instruction_is_tested() -> None:
    tested = {*TWO, *ONE, *FIELDS, *WIDE, *BITWISE, *PAIRS, "s_bfm_b64"}
    tested |= {"s_addc_u32", "s_subb_u32", "s_cselect_b32", "s_cselect_b64"}
    tested |= {"s_bitset0_b32", "s_bitset1_b32", "s_movk_i32", "s_addk_i32", "s_mulk_i32"}
    tested |= {"s_cmov_b32", "s_cmov_b64", "s_cmovk_i32"}
    tested |= {"s_bitset0_b64", "s_bitset1_b64", "s_bitreplicate_b64_b32"}
    assert tested == set(SCALAR)
    compared = {f"s_{cmp}_{r}_{kind}" for cmp in ("cmp", "cmpk") for r in COMPARISONS
                for kind in ("u32", "i32")}  # fmt: skip
    compared |= {f"s_cmp_{relation}_u64" for relation in ("eq", "lg")}
    compared |= {f"s_bitcmp{bit}_b{bits}" for bit in (0, 1) for bits in (32, 64)}
    assert compared == set(SCALAR_COMPARE)
    assert {f"s_{operation}_saveexec_b64" for operation in SAVED} == set(SAVE_EXEC)
    assert len(MODE_INSTRUCTIONS) == 3
