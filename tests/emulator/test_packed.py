"""Packed instructions: two results a lane."""

from __future__ import annotations

import numpy as np

from tests.emulator.machine import executed, vector

PAIRS = {"v[2:3]": np.array([[3, 5]], np.float32).repeat(64, 0).view(np.uint64)[:, 0]}
PAIRS["v[4:5]"] = np.array([[10, 20]], np.float32).repeat(64, 0).view(np.uint64)[:, 0]


def result(code: str) -> list[float]:
    waves = executed(code, PAIRS)
    return [float(vector(waves, i, np.float32)[17]) for i in (0, 1)]


def test_each_half_with_its_own() -> None:
    assert result("v_pk_add_f32 v[0:1], v[2:3], v[4:5]") == [13, 25]
    assert result("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]") == [30, 100]
    assert result("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[4:5]") == [40, 120]


def test_halves_can_be_chosen_and_negated() -> None:
    chosen = "v_pk_add_f32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,0]"
    assert result(chosen) == [15, 13]
    assert result("v_pk_add_f32 v[0:1], v[2:3], v[4:5] neg_lo:[1,0] neg_hi:[0,1]") == [7, -15]


def test_a_move_takes_a_word_of_each_source() -> None:
    assert result("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]") == [3, 20]
    assert result("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]") == [5, 10]


def test_a_constant_is_both_words() -> None:
    assert result("v_pk_mul_f32 v[0:1], v[2:3], 2.0") == [6, 10]
