"""Three verdicts: equal, equal up to the order of k where that changes no product, different."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl import ArgumentError, diff_layouts
from mfmadsl.export import DIFFERENT, EQUAL, REORDERED, Difference, compare_layouts
from mfmadsl.language import find
from mfmadsl.model import Intrinsic, Layout
from tests.export.layouts import HALF, reordered

DENSE = ["mfma_f32_16x16x16_f16", "mfma_f32_32x32x8_f16", "mfma_f32_32x32x4_2b_f16"]
SCALED = "mfma_scale_f32_32x32x64_f8f6f4_fp8_fp8"
GROUP = 32
SPARSE = "smfmac_f32_16x16x32_f16"


def order_of(count: int, seed: int) -> tuple[int, ...]:
    """An order of 0 to count - 1 in which something has moved."""
    order = list(range(count))
    while order == list(range(count)):
        random.Random(seed).shuffle(order)
        seed += 1
    return tuple(order)


def verdicts(found: Difference) -> dict[str, str]:
    return {each.operand: each.verdict for each in found.operands}


def summed(intrinsic: Intrinsic, layouts: dict[str, Layout]) -> bool:
    """Whether the chip, which is as the library says, adds the right products of such operands.

    The chip multiplies what lies where it looks for A[i, k] with what lies where it looks for
    B[k, j]: those have to be elements of one k, and each k once.
    """
    for block in range(intrinsic.blocks):
        pairs = []
        for k in range(intrinsic.k):
            a = layouts["a"].element(*intrinsic.a.layout.slot(0, k, block))
            b = layouts["b"].element(*intrinsic.b.layout.slot(k, 0, block))
            pairs.append((a[2], b[1]))
        if sorted(pairs) != [(k, k) for k in range(intrinsic.k)]:
            return False
    return True


@pytest.mark.parametrize("name", [*DENSE, SCALED, SPARSE])
def test_an_instruction_equals_itself(name: str) -> None:
    found = diff_layouts(find(name), find(name))
    assert set(verdicts(found).values()) == {found.verdict} == {EQUAL}


@settings(max_examples=30)
@given(st.sampled_from(DENSE), st.integers(0, 10**6))
def test_one_order_of_k_in_a_and_b_alike_changes_no_product(name: str, seed: int) -> None:
    intrinsic = find(name)
    theirs = reordered(intrinsic, order_of(intrinsic.k, seed), "ab")
    found = compare_layouts(intrinsic, theirs, "theirs")
    assert verdicts(found) == {"a": REORDERED, "b": REORDERED, "c": EQUAL}
    assert found.verdict == REORDERED
    assert summed(intrinsic, theirs)


@settings(max_examples=30)
@given(st.sampled_from(DENSE), st.sampled_from("ab"), st.integers(0, 10**6))
def test_an_order_of_k_in_one_of_them_only_is_different(name: str, only: str, seed: int) -> None:
    intrinsic = find(name)
    theirs = reordered(intrinsic, order_of(intrinsic.k, seed), only)
    found = compare_layouts(intrinsic, theirs, "theirs")
    assert verdicts(found) == {"a": EQUAL, "b": EQUAL, "c": EQUAL, only: DIFFERENT}
    assert "not in the same one of A and of B" in next(o for o in found.operands if o.reason).reason
    assert not summed(intrinsic, theirs)


def test_blocks_in_each_others_places_are_no_order_of_k() -> None:
    intrinsic = find("mfma_f32_32x32x4_2b_f16")

    def exchanged(layout: Layout) -> Layout:
        half = len(layout.slots) // 2
        return replace(layout, slots=layout.slots[half:] + layout.slots[:half])

    theirs = {o.name: exchanged(o.layout) for o in (intrinsic.a, intrinsic.b)}
    found = compare_layouts(intrinsic, theirs, "theirs")
    assert verdicts(found) == {"a": DIFFERENT, "b": DIFFERENT}


@settings(max_examples=20)
@given(st.sampled_from(DENSE), st.integers(0, 10**6))
def test_two_orders_of_k_are_different(name: str, seed: int) -> None:
    intrinsic = find(name)
    first = order_of(intrinsic.k, seed)
    second = tuple(first[(k + 1) % intrinsic.k] for k in range(intrinsic.k))
    theirs = reordered(intrinsic, first, "a") | {"b": reordered(intrinsic, second, "b")["b"]}
    if set(theirs.values()) & {intrinsic.a.layout, intrinsic.b.layout}:
        return  # one of the orders is none
    found = compare_layouts(intrinsic, theirs, "theirs")
    assert verdicts(found) == {"a": DIFFERENT, "b": DIFFERENT, "c": EQUAL}


@settings(max_examples=20)
@given(st.sampled_from(DENSE), st.integers(0, 10**6))
def test_another_order_of_n_is_different(name: str, seed: int) -> None:
    """Of the columns of B, and of those of C: no sum is one of the same products."""
    intrinsic = find(name)
    order = order_of(intrinsic.n, seed)
    theirs = {key: operand.layout for key, operand in intrinsic.operands.items()}
    b = theirs["b"]
    moved = tuple(
        b.slot(k, order[j], block)
        for block in range(b.blocks)
        for k in range(b.rows)
        for j in range(b.columns)
    )
    theirs["b"] = Layout(b.rows, b.columns, b.lanes, b.elements_per_lane, moved, b.blocks)
    found = compare_layouts(intrinsic, theirs, "theirs")
    assert verdicts(found) == {"a": EQUAL, "b": DIFFERENT, "c": EQUAL}
    (b_found,) = (each for each in found.operands if each.operand == "b")
    first = next(j for j in range(intrinsic.n) if order[j] != j)
    assert b_found.element == (0, 0, first)
    assert b_found.ours == intrinsic.b.layout.slot(0, first)
    assert b_found.theirs == intrinsic.b.layout.slot(0, order[first])


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_scales_bind_their_groups_of_k(seed: int) -> None:
    intrinsic = find(SCALED)
    order = order_of(intrinsic.k, seed)
    found = compare_layouts(intrinsic, reordered(intrinsic, order, "ab"), "theirs")
    assert any(k // GROUP != there // GROUP for k, there in enumerate(order))
    assert verdicts(found) | {"a": DIFFERENT, "b": DIFFERENT} == verdicts(found)
    assert "each scale belongs to a group of 32 k" in found.operands[0].reason
    assert verdicts(found)["scale_a"] == verdicts(found)["scale_b"] == EQUAL


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_within_a_group_the_order_is_free(seed: int) -> None:
    intrinsic = find(SCALED)
    inside = order_of(GROUP, seed)
    order = (*inside, *(GROUP + k for k in inside))
    found = compare_layouts(intrinsic, reordered(intrinsic, order, "ab"), "theirs")
    assert verdicts(found) | {"a": REORDERED, "b": REORDERED} == verdicts(found)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_the_index_of_a_sparse_a_binds_every_k(seed: int) -> None:
    intrinsic = find(SPARSE)
    stored = order_of(intrinsic.k // 2, seed)
    whole = tuple(4 * (s // 2) + 2 * (s % 2) + x for s in stored for x in (0, 1))
    theirs = reordered(intrinsic, stored, "a") | {"b": reordered(intrinsic, whole, "b")["b"]}
    found = compare_layouts(intrinsic, theirs, "theirs")
    assert (verdicts(found)["a"], verdicts(found)["b"]) == (DIFFERENT, DIFFERENT)
    assert "the index of a sparse A" in found.operands[0].reason


def test_blocks_may_each_have_k_in_an_order_of_their_own() -> None:
    intrinsic = find("mfma_f32_32x32x4_2b_f16")
    ours = {name: operand.layout for name, operand in intrinsic.operands.items()}
    moved = reordered(intrinsic, (0, 1, 3, 2), "ab")
    theirs = {
        name: replace(
            layout,
            slots=layout.slots[: len(layout.slots) // 2]
            + moved[name].slots[len(layout.slots) // 2 :],
        )
        for name, layout in ours.items()
    }
    found = compare_layouts(intrinsic, theirs, "theirs")
    assert verdicts(found) == {"a": REORDERED, "b": REORDERED, "c": EQUAL}
    assert found.operands[0].element == (1, 0, 2)
    assert "where k = 2 lies here, k = 3 lies there" in found.operands[0].reason
    assert summed(intrinsic, theirs)


def test_what_lies_elsewhere_first_is_named() -> None:
    intrinsic = find(HALF)
    order = (0, 1, 3, 2, *range(4, 16))
    a, b, c = compare_layouts(intrinsic, reordered(intrinsic, order, "ab"), "theirs").operands
    assert (a.element, a.ours, a.theirs) == ((0, 0, 2), (0, 2), (0, 3))
    assert (b.element, b.ours, b.theirs) == ((0, 2, 0), (0, 2), (0, 3))
    assert a.reason == "where k = 2 lies here, k = 3 lies there, of A and of B alike"
    assert (c.element, c.ours, c.theirs, c.reason) == (None, None, None, "")


def test_an_intrinsic_of_another_shape_is_refused() -> None:
    with pytest.raises(
        ArgumentError, match="`a` of mfma_f32_16x16x16_f16 has 1 x 16 x 16 elements"
    ):
        diff_layouts(find(HALF), find("mfma_f32_32x32x8_f16"))


def test_a_project_that_is_not_known_is_refused() -> None:
    with pytest.raises(ArgumentError, match="compared with triton, iree, ck, or an intrinsic"):
        diff_layouts(find(HALF), "hipblas")


def test_rows_with_orders_of_their_own_are_different() -> None:
    def turned(layout: Layout, x: int) -> Layout:
        """The layout with k in the opposite order in row `x` alone."""
        slots = tuple(
            layout.slot(row, layout.columns - 1 - k if row == x else k)
            for row in range(layout.rows)
            for k in range(layout.columns)
        )
        return replace(layout, slots=slots)

    intrinsic = find(DENSE[0])
    theirs = {"a": turned(intrinsic.a.layout, 3), "b": intrinsic.b.layout}
    found, _ = compare_layouts(intrinsic, theirs, "theirs").operands
    assert (found.verdict, found.reason) == (DIFFERENT, "")
    assert found.element == (0, 3, 0)
