"""Copies that are made at edges only, and those that stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tvm.script import from_source

from mfmadsl.passes.cpu.read_through import read_through_copies
from tests.backend.guarded import Array
from tests.passes.flat import body_of, computed, function

ROWS = """
for i in range(3):
    own = T.alloc_buffer((32,), "float32")
    for r, k in T.grid(4, 8):
        own[r * 8 + k] = T.if_then_else(i * 4 + r < 10, A[i * 32 + r * 8 + k], T.float32(0))
    for r, k in T.grid(4, 8):
        C[i * 32 + r * 8 + k] = own[r * 8 + k] * T.float32(2)
"""
"""Rows of eight, four at a time; ten there are."""

LENGTHS = {"A": 80, "C": 96}


def padded(a: Array, by: float = 0) -> Array:
    return np.concatenate([a, np.full(16, by)])


def test_a_copy_is_made_where_rows_go_past_the_edge() -> None:
    assert (
        body_of(read_through_copies(function(LENGTHS, ROWS)))
        == """\
for i in range(3):
    if i < 2:
        for r, k in T.grid(4, 8):
            C[i * 32 + r * 8 + k] = A[r * 8 + k + i * 32] * T.float32(2.0)
    else:
        own = T.alloc_buffer((32,))
        for r, k in T.grid(4, 8):
            own[r * 8 + k] = T.if_then_else(i * 4 + r < 10, A[i * 32 + r * 8 + k], T.float32(0.0))
        for r, k in T.grid(4, 8):
            C[i * 32 + r * 8 + k] = own[r * 8 + k] * T.float32(2.0)"""
    )


READ: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "rows": (ROWS, lambda a: 2 * padded(a)),
    "of several statements": (
        ROWS + """
    for r, k in T.grid(4, 8):
        C[i * 32 + r * 8 + k] = C[i * 32 + r * 8 + k] + own[r * 8 + k]
""", lambda a: 3 * padded(a)),
    "filled up with ones": (ROWS.replace("T.float32(0)", "T.float32(1)"),
                            lambda a: 2 * padded(a, 1)),
    "two bounds": (
        ROWS.replace("i * 4 + r < 10", "i * 4 + r < 10 and k < 8"), lambda a: 2 * padded(a)),
    "a bound that some rows only reach": (
        ROWS.replace("i * 4 + r < 10", "i * 4 + r < 10 and k <= 5"),
        lambda a: 2 * np.where(np.arange(96) % 8 < 6, padded(a), 0)),
    "vectors": (
        ROWS.replace(
            "for r, k in T.grid(4, 8):", "for r in range(4):\n      for k in T.vectorized(8):"),
        lambda a: 2 * padded(a)),
    "a copy under a condition of its own": (
        ROWS.replace("        own[", "      if k < 8:\n        own["), lambda a: 2 * padded(a)),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_read_through_is_right_and_reads_nothing_else(name: str) -> None:
    body, wanted = READ[name]
    before = function(LENGTHS, body)
    after = body_of(read_through_copies(before))
    inside, _, at_the_edge = after.partition("else:")
    assert "own" not in inside
    assert "own[" in at_the_edge
    a, c = computed(before)
    np.testing.assert_array_equal(c, wanted(a))


LEFT: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "its elements lie in another order": (
        ROWS.replace("own[r * 8 + k]", "own[k * 4 + r]"), lambda a: 2 * padded(a)),
    "its elements are others": (
        ROWS.replace("A[i * 32 + r * 8 + k], ", "A[i * 32 + r * 8 + k] + T.float32(1), "),
        lambda a: 2 * (padded(a + 1))),
    "its elements are functions": (
        ROWS.replace("T.if_then_else(i * 4 + r < 10, A[i * 32 + r * 8 + k], T.float32(0))",
                     "T.sqrt(A[T.min(i * 32 + r * 8 + k, 79)])"),
        lambda a: 2 * np.sqrt(padded(a, 80)).astype(np.float32)),
    "nothing is beyond an edge": (
        ROWS.replace("T.if_then_else(i * 4 + r < 10, A[i * 32 + r * 8 + k], T.float32(0))",
                     "A[T.min(i * 32 + r * 8 + k, 79)]"),
        lambda a: 2 * padded(a, 80)),
    "a lower bound": (
        ROWS.replace("i * 4 + r < 10", "i * 4 + r < 10 and i * 4 + r > 1"),
        lambda a: 2 * np.where(np.arange(96) < 16, 0, padded(a))),
    "one place or another": (
        ROWS.replace("i * 4 + r < 10", "i * 4 + r < 8 or i * 4 + r < 10"),
        lambda a: 2 * padded(a)),
    "a bound that grows by no number": (
        ROWS.replace("i * 4 + r < 10", "i * 4 + r * r < 11").replace("A[i * 32", "A[i * 16"),
        lambda a: 2 * np.concatenate([
            np.where(4 * i + r * r < 11, a[16 * i + 8 * r : 16 * i + 8 * r + 8], 0)
            for i in range(3) for r in range(4)])),
    "the copy is written later": (
        ROWS.replace("    for r, k in T.grid(4, 8):\n        C", """\
    own[3] = T.float32(0)
    for r, k in T.grid(4, 8):
        C"""), lambda a: 2 * np.where(np.arange(96) % 32 == 3, 0, padded(a))),
    "the source is written later": (
        ROWS.replace("    for r, k in T.grid(4, 8):\n        C", """\
    A[i * 32] = T.float32(0)
    for r, k in T.grid(4, 8):
        C"""), lambda a: 2 * padded(a)),
}  # fmt: skip


def test_what_stands_before_a_copy_stays_there() -> None:
    body = ROWS.replace("    own = T.alloc", "    C[96 + i] = T.float32(7)\n    own = T.alloc")
    before = function({"A": 80, "C": 99}, body)
    assert "if i < 2:" in body_of(read_through_copies(before))
    a, c = computed(before)
    np.testing.assert_array_equal(c, np.concatenate([2 * padded(a), [7, 7, 7]]))


@pytest.mark.parametrize("name", LEFT)
def test_what_stays_is_right_as_well(name: str) -> None:
    body, wanted = LEFT[name]
    assert body != ROWS
    before = function(LENGTHS, body)
    assert body_of(read_through_copies(before)) == body_of(before)
    arrays = [np.arange(1, 81, dtype=np.float32), np.full(96, 77, np.float32)]
    _, c = computed(before, [each.copy() for each in arrays])
    np.testing.assert_array_equal(c, wanted(arrays[0]))


def test_a_copy_with_another_case_stays() -> None:
    found = function(LENGTHS, """
for i in range(3):
    own = T.alloc_buffer((32,), "float32")
    for r, k in T.grid(4, 8):
        if k < 4:
            own[r * 8 + k] = T.if_then_else(i * 4 + r < 10, A[i * 32 + r * 8 + k], T.float32(0))
        else:
            own[r * 8 + k] = T.float32(1)
    for r, k in T.grid(4, 8):
        C[i * 32 + r * 8 + k] = own[r * 8 + k]
""")  # fmt: skip
    assert body_of(read_through_copies(found)) == body_of(found)
    a, c = computed(found)
    np.testing.assert_array_equal(c, np.where(np.arange(96) % 8 < 4, padded(a), 1))


def test_a_statement_that_fills_another_buffer_stays() -> None:
    """The buffer before it is filled later on."""
    found = function({"A": 10, "C": 12}, """
other = T.alloc_buffer((12,), "float32")
own = T.alloc_buffer((12,), "float32")
for k in range(12):
    other[k] = T.if_then_else(k < 10, A[k], T.float32(0))
for k in range(12):
    own[k] = other[11 - k]
for k in range(12):
    C[k] = own[k]
""")  # fmt: skip
    assert body_of(read_through_copies(found)) == body_of(found)
    a, c = computed(found)
    np.testing.assert_array_equal(c, np.concatenate([[0, 0], a[::-1]]))


def test_a_copy_of_gathered_elements_stays() -> None:
    """How far they are from their own places is not the same for all."""
    found = function({"at": 10, "A": 40, "C": 12}, """
own = T.alloc_buffer((12,), "float32")
for k in range(12):
    own[k] = T.if_then_else(k < 10, A[at[k] * 3], T.float32(0))
for k in range(12):
    C[k] = own[k]
""")  # fmt: skip
    assert body_of(read_through_copies(found)) == body_of(found)
    at, a, c = computed(found)
    np.testing.assert_array_equal(c, np.concatenate([a[at * 3], [0, 0]]))


def test_a_copy_of_a_place_that_is_read_stays() -> None:
    """What tells the place may be another number when the copy is used."""
    found = function({"at": 1, "A": 40, "C": 12}, """
own = T.alloc_buffer((12,), "float32")
for k in range(12):
    own[k] = T.if_then_else(k < 12, A[at[0] * 3 + k], T.float32(0))
at[0] = 7
for k in range(12):
    C[k] = own[k]
""")  # fmt: skip
    assert body_of(read_through_copies(found)) == body_of(found)
    at, a, c = computed(found)
    assert at[0] == 7
    np.testing.assert_array_equal(c, a[3:15])


@pytest.mark.parametrize(
    "use", ["T.address_of(own[3])", 'own.access_ptr("r")', "own.data"]
)  # fmt: skip
def test_a_copy_whose_address_is_taken_stays(use: str) -> None:
    """Who has an address may read more, or write."""
    found = function(LENGTHS, ROWS + f"""
    T.evaluate(T.call_extern("int32", "free_to_write", {use}))
""")  # fmt: skip
    assert body_of(read_through_copies(found)) == body_of(found)


def test_a_row_that_is_not_there_is_not_read() -> None:
    """Of eleven rows, four at a time, one is missing."""
    found = function({"A": 88, "C": 96}, ROWS.replace("< 10", "< 11"))
    assert "if i < 2:" in body_of(read_through_copies(found))
    a, c = computed(found)
    np.testing.assert_array_equal(c, 2 * np.concatenate([a, np.zeros(8)]))


def test_a_source_that_is_not_flat_stays() -> None:
    found = from_source("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((10, 8), "float32"), C: T.Buffer((12,), "float32")):
    own = T.alloc_buffer((12,), "float32")
    for k in range(12):
        own[k] = T.if_then_else(k < 10, A[k, 0], T.float32(0))
    for k in range(12):
        C[k] = own[k]
""")
    assert body_of(read_through_copies(found)) == body_of(found)


def test_loops_that_do_not_begin_at_zero() -> None:
    found = function({"A": 10, "C": 12}, """
for i in range(2):
    own = T.alloc_buffer((12,), "float32")
    for k in range(2, 8):
        own[k] = T.if_then_else(i * 4 + k < 10, A[i * 4 + k], T.float32(0))
    for k in range(2, 8):
        C[i * 4 + k] = own[k]
""")  # fmt: skip
    assert "if i < 1:" in body_of(read_through_copies(found))
    a, c = computed(found)
    np.testing.assert_array_equal(c, np.concatenate([[77, 77], a[2:], [0, 0]]))


def test_loops_of_no_known_length_stay() -> None:
    found = function({"n": 1, "A": 10, "C": 12}, """
own = T.alloc_buffer((12,), "float32")
for k in range(n[0] + 11):
    own[k] = T.if_then_else(k < 10, A[k], T.float32(0))
for k in range(12):
    C[k] = own[k]
""")  # fmt: skip
    assert body_of(read_through_copies(found)) == body_of(found)
    _, a, c = computed(found)
    np.testing.assert_array_equal(c, np.concatenate([a, [0, 0]]))


def test_vectors_of_a_copy_become_vectors_of_the_source() -> None:
    found = function({"A": 10, "C": 16}, """
for i in range(2):
    own = T.alloc_buffer((8,), "float32")
    for k in range(8):
        own[k] = T.if_then_else(i * 8 + k < 10, A[i * 8 + k], T.float32(0))
    C[T.Ramp(i * 8, 1, 8)] = own[T.Ramp(0, 1, 8)]
""")  # fmt: skip
    after = body_of(read_through_copies(found))
    assert "C[i * 8:i * 8 + 8] = A[T.Ramp(i * 8, 1, 8)]" in after
    a, c = computed(found)
    np.testing.assert_array_equal(c, np.concatenate([a, np.zeros(6)]))
