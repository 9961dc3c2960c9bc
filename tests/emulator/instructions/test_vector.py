"""Modifiers, masks, carries and what else goes beyond a row of the table (see `test_manual`)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from tests.emulator.waves import executed, put, run, vector, wave

words = arrays(np.uint32, 64, elements=st.integers(0, 2**32 - 1))


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


def test_source_modifiers() -> None:
    values = {"v1": np.full(64, -3, np.float32), "v2": np.full(64, 5, np.float32)}
    waves = executed("v_add_f32 v0, |v1|, -v2", values)
    assert (vector(waves, 0, np.float32) == -2).all()


def test_a_fused_multiply_add_rounds_once() -> None:
    a = np.full(64, 1 + 2**-12, np.float32)
    waves = executed("v_fma_f32 v0, v1, v1, v2", {"v1": a, "v2": np.full(64, -1, np.float32)})
    assert (vector(waves, 0, np.float32) == np.float32(2**-11 + 2**-24)).all()


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


def test_clamp_saturates() -> None:
    values = {"v1": np.full(64, 2**32 - 2, np.uint32), "v2": np.full(64, 5, np.uint32)}
    assert vector(executed("v_add_u32_e64 v0, v1, v2 clamp", values), 0)[3] == 2**32 - 1
    values = {"v1": np.full(64, 2.5, np.float32), "v2": np.full(64, -9, np.float32)}
    assert vector(executed("v_add_f32_e64 v0, v1, v1 clamp", values), 0, np.float32)[3] == 1
    assert vector(executed("v_add_f32_e64 v0, v1, v2 clamp", values), 0, np.float32)[3] == 0


def test_halves_are_chosen_by_op_sel() -> None:
    pair = np.array([3, 5], np.float16).view(np.uint32).repeat(64)
    waves = executed("v_fma_f16 v0, v1, v1, v1 op_sel:[0,1,1,1]", {"v0": pair, "v1": pair})
    assert vector(waves, 0, np.uint32)[0].tobytes() == np.array([3, 20], np.float16).tobytes()


def test_a_constant_may_be_negated() -> None:
    values = {"v1": np.full(64, 3, np.float32)}
    assert vector(executed("v_mul_f32_e64 v0, v1, neg(1.0)", values), 0, np.float32)[0] == -3


def test_denormals_are_flushed_where_the_mode_says_so() -> None:
    tiny = np.full(64, 1e-40, np.float32)
    for flushed, expected in (((), 2e-40), (("f32",), 0)):
        waves = wave()
        put(waves, {"v1": tiny})
        line = parse_instruction("v_add_f32 v0, v1, v1")
        compile_instruction(line, Machine("gfx942", flushed)).execute(waves)
        assert vector(waves, 0, np.float32)[0] == pytest.approx(expected, rel=1e-5, abs=0)


@pytest.mark.parametrize(
    ("denominator", "scaled"),
    [(2.0**-125, 0), (2.0**-126, 0), (2.0**-127, 64), (2.0**-149, 64)],
)
def test_a_denormal_denominator_is_scaled_and_the_smallest_normal_one_is_not(
    denominator: float, scaled: int
) -> None:
    values = {"v1": np.full(64, 2.0**-100, np.float32), "v2": np.full(64, denominator, np.float32)}
    waves = executed("v_div_scale_f32 v0, vcc, v2, v2, v1", values)
    assert vector(waves, 0, np.float32)[0] == denominator * 2.0**scaled


@settings(max_examples=400)
@given(words, words)
def test_divisions_come_out_right(a: Array, b: Array) -> None:
    """The whole sequence that compilers emit for n / d, on floats of all kinds."""
    numerator, denominator = a.view(np.float32), b.view(np.float32)
    waves = wave()
    put(waves, {"v1": numerator, "v2": denominator})
    for line in DIVISION.strip().splitlines():
        run(waves, line.strip())
    with np.errstate(all="ignore"):
        expected = (numerator.astype(np.float64) / denominator.astype(np.float64)).astype("f4")
    np.testing.assert_array_equal(vector(waves, 0, np.float32), expected)


DIVISION = """
    v_div_scale_f32 v3, s[4:5], v2, v2, v1
    v_div_scale_f32 v4, vcc, v1, v2, v1
    v_rcp_f32_e32 v5, v3
    v_fma_f32 v6, -v3, v5, 1.0
    v_fmac_f32_e32 v5, v6, v5
    v_mul_f32_e32 v6, v4, v5
    v_fma_f32 v7, -v3, v6, v4
    v_fmac_f32_e32 v6, v7, v5
    v_fma_f32 v7, -v3, v6, v4
    v_div_fmas_f32 v5, v7, v5, v6
    v_div_fixup_f32 v0, v5, v2, v1
"""
