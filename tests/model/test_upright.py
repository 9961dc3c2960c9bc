"""Instructions whose lanes and registers count up, by other names of rows, columns and k."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic, Layout, Operand, numbered_up, upright

PLAIN = find("mfma_f32_16x16x16_f16")
OTHERS = [find("mfma_f32_32x32x8_f16"), find("mfma_f32_4x4x4_16b_f16")]
Order = Callable[[int], int]


def reordered(operand: Operand, lane: Order, register: Order) -> Operand:
    slots = tuple((lane(x), register(r)) for x, r in operand.layout.slots)
    return replace(operand, layout=replace(operand.layout, slots=slots))


def down(operand: Operand) -> Operand:
    """The operand with all lanes and registers counted from the other end."""
    layout = operand.layout
    return reordered(
        operand, lambda x: layout.lanes - 1 - x, lambda r: layout.elements_per_lane - 1 - r
    )


def counts_up(layout: Layout) -> bool:
    forms = layout.forward("row", "column", "block")
    return all(digit.scale > 0 for form in forms for digit in form.digits)


def result(one: Intrinsic, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What is in the lanes and registers of C if these are in those of A and B."""
    c = np.zeros((one.c.layout.lanes, one.c.layout.elements_per_lane))
    places = product(range(one.blocks), range(one.m), range(one.n), range(one.k))
    for block, i, j, k in places:
        left, right = one.a.layout.slot(i, k, block), one.b.layout.slot(k, j, block)
        c[one.c.layout.slot(i, j, block)] += a[left] * b[right]
    return c


def test_instructions_of_the_chips_are_upright() -> None:
    for intrinsic in library().values():
        if isinstance(intrinsic, Intrinsic):
            assert upright(intrinsic) is intrinsic
            for operand in (intrinsic.a, intrinsic.b, intrinsic.c):
                assert numbered_up(operand.layout) is operand.layout


@pytest.mark.parametrize("names", ["a", "b", "c", "ab", "ac", "bc", "abc"])
@pytest.mark.parametrize("plain", [PLAIN, OTHERS[0]], ids=lambda i: i.name)
def test_the_instruction_is_the_same_under_other_names(plain: Intrinsic, names: str) -> None:
    changed: dict[str, Operand] = {name: down(plain.operand(name)) for name in names}
    intrinsic = replace(plain, a=changed.get("a", plain.a), b=changed.get("b", plain.b),
                        c=changed.get("c", plain.c))  # fmt: skip
    found = upright(intrinsic)
    assert (found is intrinsic) == (names == "b")
    if found is not intrinsic:
        assert found.name == f"{plain.name}_upright"
    assert counts_up(found.c.layout)
    generator = np.random.default_rng(1)
    a, b = (
        generator.integers(-9, 9, (64, operand.layout.elements_per_lane))
        for operand in (plain.a, plain.b)
    )
    assert (result(found, a, b) == result(intrinsic, a, b)).all()
    for operand in (found.a, found.b):
        assert counts_up(numbered_up(operand.layout))


@pytest.mark.parametrize("plain", [PLAIN, *OTHERS], ids=lambda i: i.name)
def test_numbers_that_count_up_are_those_of_the_other_end(plain: Intrinsic) -> None:
    layout = down(plain.c).layout
    assert numbered_up(layout) == plain.c.layout


def test_what_is_no_sum_of_digits_stays() -> None:
    lanes = np.random.default_rng(1).permutation(64)
    changed = replace(PLAIN, c=reordered(PLAIN.c, lambda x: int(lanes[x]), int))
    assert upright(changed) is changed
    assert numbered_up(changed.c.layout) is changed.c.layout


@pytest.mark.parametrize(
    "name", ["mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", "smfmac_f32_16x16x32_f16"]
)
def test_scales_and_an_index_keep_the_names_that_they_count_by(name: str) -> None:
    plain = find(name)
    changed = replace(plain, a=down(plain.a), c=down(plain.c))
    assert not counts_up(changed.c.layout)
    assert upright(changed) is changed
