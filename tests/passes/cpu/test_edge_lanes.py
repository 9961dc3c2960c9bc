"""Vectorized loops past an edge: which become masked vectors, and which stay."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tvm.script import from_source
from tvm.tirx import PrimFunc

from mfmadsl.passes.cpu.edge_lanes import mask_edge_lanes
from tests.backend.guarded import Array
from tests.passes.flat import body_of, computed, function

COLUMNS = """
for j in range(3):
    for lane in T.vectorized(16):
        if j * 16 + lane < 37:
            C[j * 16 + lane] = A[j * 16 + lane] * T.float32(2)
"""
CHOICE = """
for j in range(3):
    for lane in T.vectorized(16):
        C[j * 16 + lane] = T.if_then_else(j * 16 + lane < 37, A[j * 16 + lane], T.float32(5))
"""


def test_a_condition_becomes_the_mask_of_loads_and_of_the_store() -> None:
    found = mask_edge_lanes(function({"A": 37, "C": 37}, COLUMNS))
    mask = 'T.get_active_lane_mask("uint1x16", 0, T.max(37 - j * 16, 0))'
    assert (
        body_of(found)
        == f"""\
for j in range(3):
    A_lanes = T.alloc_local((16,))
    A_lanes[0:16] = T.masked_load("float32x16", A, T.Ramp(j * 16, 1, 16), {mask})
    C_lanes = T.alloc_local((16,))
    for lane in T.vectorized(16):
        C_lanes[lane] = A_lanes[lane] * T.float32(2.0)
    T.masked_store(C, C_lanes[T.Ramp(0, 1, 16)], T.Ramp(j * 16, 1, 16), {mask})"""
    )


def test_a_choice_becomes_the_mask_of_its_loads() -> None:
    found = mask_edge_lanes(function({"A": 37, "C": 48}, CHOICE))
    mask = 'T.get_active_lane_mask("uint1x16", 0, T.max(37 - j * 16, 0))'
    assert (
        body_of(found)
        == f"""\
for j in range(3):
    A_lanes = T.alloc_local((16,))
    A_lanes[0:16] = T.masked_load("float32x16", A, T.Ramp(j * 16, 1, 16), {mask})
    for lane in T.vectorized(16):
        C[j * 16 + lane] = T.Select(j * 16 + lane < 37, A_lanes[lane], T.float32(5.0))"""
    )


def test_a_choice_of_lanes_that_are_not_stored_is_not_loaded() -> None:
    case = MASKED["a choice that reads more than is stored"]
    after = body_of(mask_edge_lanes(case.function()))
    loaded = "T.max(T.min(T.max(12 - p * 16, 0), T.max(9 - p * 16, 0)), 0)"
    alike = "T.min(T.max(12 - p * 16, 0), T.max(9 - p * 16, 0))"
    assert loaded in after or alike in after, after


def test_done_twice_is_done_once() -> None:
    once = mask_edge_lanes(function({"A": 37, "C": 37}, COLUMNS))
    assert body_of(mask_edge_lanes(once)) == body_of(once)


@dataclass(frozen=True)
class Case:
    """Loops over A of `a` elements, B of `b`, and C of `c`; C afterwards, from A and B."""

    a: int
    c: int
    body: str
    wanted: Any
    b: int = 1

    def function(self) -> PrimFunc:
        """Its outer loop takes as many turns as memory says, so that LLVM knows of none ahead."""
        body = re.sub(r"in range\((\d)\)", r"in range(n[0] + \1 - 1)", self.body)
        return function({"n": 1, "A": self.a, "B": self.b, "C": self.c}, body)

    def check(self) -> None:
        n, a, b, c = computed(self.function())
        assert n == 1
        np.testing.assert_array_equal(c, self.wanted(a, b, np.full(self.c, 77.0)))


def filled(*parts: Any) -> Array:
    """Arrays, and (number, value) for that many of a value, one after another."""
    return np.concatenate([np.full(*p) if isinstance(p, tuple) else p for p in parts])


MASKED = {
    "a store": Case(37, 37, COLUMNS, lambda a, b, c: 2 * a),
    "a choice": Case(37, 48, CHOICE, lambda a, b, c: filled(a, (11, 5.0))),
    "not less and equal": Case(
        37, 38, """
for j in range(3):
    for lane in T.vectorized(16):
        if j * 16 + lane <= 36:
            C[j * 16 + lane + 1] = A[j * 16 + lane]
""", lambda a, b, c: filled([77], a)),
    "turned around": Case(
        37, 37, """
for j in range(3):
    for lane in T.vectorized(16):
        if 37 > j * 16 + lane and 36 >= j * 16 + lane:
            C[j * 16 + lane] = A[j * 16 + lane]
""", lambda a, b, c: a),
    "two bounds of which either is the lower": Case(
        37, 37, """
for j in range(3):
    for lane in T.vectorized(16):
        if j * 16 + lane < 37 and lane + j * 4 < 15:
            C[j * 16 + lane] = A[j * 16 + lane]
""", lambda a, b, c: filled(a[:15], [77], a[16:27], (5, 77), a[32:37])),
    "no lane at all": Case(
        20, 20, """
for j in range(4):
    for lane in T.vectorized(16):
        if j * 16 + lane < 20:
            C[j * 16 + lane] = A[j * 16 + lane]
""", lambda a, b, c: a),
    "rows as well": Case(
        3 * 21, 3 * 21, """
for i, j in T.grid(4, 2):
    for lane in T.vectorized(16):
        if i < 3 and j * 16 + lane < 21:
            C[i * 21 + j * 16 + lane] = A[i * 21 + j * 16 + lane]
""", lambda a, b, c: a),
    "rows of a choice": Case(
        3 * 21, 4 * 32, """
for i, j in T.grid(4, 2):
    for lane in T.vectorized(16):
        C[i * 32 + j * 16 + lane] = T.if_then_else(
            i < 3 and j * 16 + lane < 21, A[i * 21 + j * 16 + lane], T.float32(9))
""", lambda a, b, c: np.pad(a.reshape(3, 21), ((0, 1), (0, 11)), constant_values=9).ravel()),
    "a choice in a masked store": Case(
        16, 30, """
for p in range(2):
    for lane in T.vectorized(16):
        if p * 16 + lane < 30:
            C[p * 16 + lane] = T.if_then_else(p * 16 + lane < 9, A[p * 16 + lane], T.float32(5))
""", lambda a, b, c: filled(a[:9], (21, 5.0))),
    "a choice that reads more than is stored": Case(
        9, 9, """
for p in range(1):
    for lane in T.vectorized(16):
        if p * 16 + lane < 9:
            C[p * 16 + lane] = T.if_then_else(p * 16 + lane < 12, A[p * 16 + lane], T.float32(5))
""", lambda a, b, c: a),
    "a uniform choice in a masked store": Case(
        16, 30, """
for p in range(2):
    for lane in T.vectorized(16):
        if p * 16 + lane < 30:
            C[p * 16 + lane] = T.if_then_else(p < 1, A[p * 512 + lane], B[p + lane - 1])
""", lambda a, b, c: filled(a, b[:14]), b=14),
    "a choice in a uniform choice": Case(
        9, 32, """
for p in range(2):
    for lane in T.vectorized(16):
        C[p * 16 + lane] = T.if_then_else(
            p < 1, T.if_then_else(lane < 9, A[p * 512 + lane], T.float32(4)), T.float32(5))
""", lambda a, b, c: filled(a, (7, 4.0), (16, 5.0))),
    "a choice in the other case of a uniform choice": Case(
        9, 32, """
for p in range(2):
    for lane in T.vectorized(16):
        C[p * 16 + lane] = T.if_then_else(
            p < 1, T.float32(5),
            T.if_then_else(lane < 9, A[(p - 1) * 512 + lane], T.float32(4)))
""", lambda a, b, c: filled((16, 5.0), a, (7, 4.0))),
    "a choice in a choice": Case(
        8, 32, """
for p in range(2):
    for lane in T.vectorized(16):
        C[p * 16 + lane] = T.if_then_else(
            p * 10 + lane < 8, T.if_then_else(lane < 9, A[p * 512 + lane], T.float32(4)),
            T.float32(5))
""", lambda a, b, c: filled(a, (24, 5.0))),
    "what is read uniformly, where there are lanes": Case(
        20, 20, """
for j in range(4):
    for lane in T.vectorized(16):
        if j * 16 + lane < 20:
            C[j * 16 + lane] = A[j * 16 + lane] + B[j * 1024]
""", lambda a, b, c: a + np.repeat([b[0], b[1024]], [16, 4]), b=1025),
    "what is read uniformly in a choice, where there are lanes": Case(
        20, 64, """
for j in range(4):
    for lane in T.vectorized(16):
        C[j * 16 + lane] = T.if_then_else(
            j * 16 + lane < 20, A[j * 16 + lane] + B[j * 1024], T.float32(3))
""", lambda a, b, c: filled(a + np.repeat([b[0], b[1024]], [16, 4]), (44, 3.0)), b=1025),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
def test_what_is_masked_is_right_and_touches_nothing_else(name: str) -> None:
    case = MASKED[name]
    before = case.function()
    after = body_of(mask_edge_lanes(before))
    assert "masked_load" in after
    assert ("masked_store" in after) == ("if " in body_of(before))
    case.check()


LEFT = {
    "a serial loop": Case(
        37, 37, COLUMNS.replace("T.vectorized", "T.serial"), lambda a, b, c: 2 * a),
    "no condition": Case(
        48, 48, """
for j in range(3):
    for lane in T.vectorized(16):
        C[j * 16 + lane] = A[j * 16 + lane]
""", lambda a, b, c: a),
    "a condition of no lane": Case(
        32, 48, """
for j in range(3):
    for lane in T.vectorized(16):
        if j < 2:
            C[j * 16 + lane] = A[j * 16 + lane]
""", lambda a, b, c: filled(a, (16, 77.0))),
    "a choice of no lane": Case(
        32, 48, """
for j in range(3):
    for lane in T.vectorized(16):
        C[j * 16 + lane] = T.if_then_else(j < 2, A[j * 16 + lane], T.float32(5))
""", lambda a, b, c: filled(a, (16, 5.0))),
    "another case": Case(
        37, 48, """
for j in range(3):
    for lane in T.vectorized(16):
        if j * 16 + lane < 37:
            C[j * 16 + lane] = A[j * 16 + lane]
        else:
            C[j * 16 + lane] = T.float32(5)
""", lambda a, b, c: filled(a, (11, 5.0))),
    "a lower bound": Case(
        16, 16, """
for lane in T.vectorized(16):
    if lane >= 3:
        C[lane] = A[lane - 3]
""", lambda a, b, c: filled((3, 77.0), a[:13])),
    "an upper and a lower bound": Case(
        16, 16, """
for lane in T.vectorized(16):
    if lane < 9 and lane > 2:
        C[lane] = A[lane]
""", lambda a, b, c: filled((3, 77.0), a[3:9], (7, 77.0))),
    "one lane": Case(
        16, 16, """
for lane in T.vectorized(16):
    if lane == 3:
        C[lane] = A[lane]
""", lambda a, b, c: filled((3, 77.0), [a[3]], (12, 77.0))),
    "every other lane": Case(
        8, 16, """
for lane in T.vectorized(16):
    if lane * 2 < 16:
        C[lane] = A[lane]
""", lambda a, b, c: filled(a, (8, 77.0))),
    "one condition or another": Case(
        16, 16, """
for lane in T.vectorized(16):
    if lane < 3 or lane < 9:
        C[lane] = A[lane]
""", lambda a, b, c: filled(a[:9], (7, 77.0))),
    "elements apart in what is read": Case(
        17, 9, """
for lane in T.vectorized(16):
    if lane < 9:
        C[lane] = A[lane * 2]
""", lambda a, b, c: a[::2]),
    "elements apart in what is written": Case(
        9, 17, """
for lane in T.vectorized(16):
    if lane < 9:
        C[lane * 2] = A[lane]
""", lambda a, b, c: np.where(np.arange(17) % 2 == 0, np.repeat(a, 2)[:17], 77)),
    "elements apart in a choice": Case(
        17, 16, """
for lane in T.vectorized(16):
    C[lane] = T.if_then_else(lane < 9, A[lane * 2], T.float32(5))
""", lambda a, b, c: filled(a[::2], (7, 5.0))),
    "backwards": Case(
        9, 9, """
for lane in T.vectorized(16):
    if lane < 9:
        C[lane] = A[8 - lane]
""", lambda a, b, c: a[::-1]),
    "reads in both cases of a choice": Case(
        9, 16, """
for lane in T.vectorized(16):
    C[lane] = T.if_then_else(lane < 9, A[lane], A[lane - 9])
""", lambda a, b, c: filled(a, a[:7])),
    "a choice in the other case of a choice": Case(
        12, 16, """
for lane in T.vectorized(16):
    C[lane] = T.if_then_else(
        lane < 4, T.float32(5), T.if_then_else(lane < 12, A[lane], T.float32(6)))
""", lambda a, b, c: filled((4, 5.0), a[4:], (4, 6.0))),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_as_it_is_is_right_as_well(name: str) -> None:
    case = LEFT[name]
    before = case.function()
    assert body_of(mask_edge_lanes(before)) == body_of(before)
    case.check()


def test_a_bound_that_is_read_is_read_where_it_was() -> None:
    """A row that is not there has no length either."""
    found = function({"n": 2, "A": 32, "C": 48}, """
for p in range(3):
    for lane in T.vectorized(16):
        C[p * 16 + lane] = T.if_then_else(
            p < 2 and lane < n[p * 1] * 3, A[p * 16 + lane], T.float32(5))
""")  # fmt: skip
    assert body_of(mask_edge_lanes(found)) == body_of(found)
    _, a, c = computed(found)
    np.testing.assert_array_equal(c, filled(a[:3], (13, 5.0), a[16:22], (26, 5.0)))


def test_a_place_that_is_read_is_read_where_there_are_lanes() -> None:
    """Rows that are gathered: past the last there is no number of one."""
    found = function({"at": 2, "A": 64, "C": 48}, """
for p in range(3):
    for lane in T.vectorized(16):
        C[p * 16 + lane] = T.if_then_else(
            p < 2 and lane < 9, A[at[p * 1] * 16 + lane], T.float32(5))
""")  # fmt: skip
    after = body_of(mask_edge_lanes(found))
    assert "if T.Select(p < 2, T.max(9, 0), 0) > 0:\n        A_lanes[0:16] = T.masked" in after
    at, a, c = computed(found)
    rows = [a[16 * row : 16 * row + 9] for row in at]
    np.testing.assert_array_equal(c, filled(rows[0], (7, 5.0), rows[1], (7, 5.0), (16, 5.0)))


def test_a_place_to_write_that_is_read_stays() -> None:
    found = function({"at": 2, "A": 9, "C": 64}, """
for p in range(2):
    for lane in T.vectorized(16):
        if lane < 9:
            C[at[p] * 16 + lane] = A[lane]
""")  # fmt: skip
    assert body_of(mask_edge_lanes(found)) == body_of(found)


def test_what_is_local_is_read_whole() -> None:
    found = function({"C": 9}, """
own = T.alloc_buffer((16,), "float32", scope="local")
for lane in T.vectorized(16):
    own[lane] = T.float32(3)
for lane in T.vectorized(16):
    if lane < 9:
        C[lane] = own[lane]
""")  # fmt: skip
    after = body_of(mask_edge_lanes(found))
    assert "masked_load" not in after
    assert "masked_store" in after
    (c,) = computed(found)
    np.testing.assert_array_equal(c, np.full(9, 3))


def test_a_loop_of_two_statements_stays() -> None:
    found = function({"A": 9, "B": 9, "C": 9}, """
for lane in T.vectorized(16):
    if lane < 9:
        C[lane] = A[lane]
        B[lane] = A[lane]
""")  # fmt: skip
    assert body_of(mask_edge_lanes(found)) == body_of(found)


def test_a_buffer_that_is_not_flat_stays() -> None:
    found = from_source("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((9,), "float32"), C: T.Buffer((9, 2), "float32")):
    for lane in T.vectorized(16):
        if lane < 9:
            C[lane, 1] = A[lane]
""")
    assert body_of(mask_edge_lanes(found)) == body_of(found)
