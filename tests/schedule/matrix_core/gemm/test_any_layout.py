"""Instructions with their elements in any order of bits: GEMMs are right, and none is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mfmadsl import Gemm, emulate, find
from mfmadsl.model import Intrinsic, Operand, upright
from tests.cases import ALL

INSTRUCTIONS = [
    "mfma_f32_16x16x16_f16",
    "mfma_f32_32x32x8_f16",
    "mfma_f32_16x16x16_bf16",
    "mfma_f32_16x16x32_fp8_fp8",
    "mfma_i32_16x16x32_i8",
    "mfma_f32_16x16x4_f32",
    "mfma_f64_16x16x4_f64",
]


@st.composite
def orders(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """The numbers below `count`, a power of two, with their bits shuffled and some turned."""
    bits = count.bit_length() - 1
    places = draw(st.permutations(range(bits)))
    turned = draw(st.sampled_from([0, 0, count - 1, draw(st.integers(0, count - 1))]))
    return tuple(
        turned ^ sum((x >> bit & 1) << place for bit, place in enumerate(places))
        for x in range(count)
    )


def reordered(operand: Operand, lanes: Sequence[int], registers: Sequence[int]) -> Operand:
    slots = tuple((lanes[lane], registers[register]) for lane, register in operand.layout.slots)
    return replace(operand, layout=replace(operand.layout, slots=slots))


def of_other_k(operand: Operand, k: Sequence[int]) -> Operand:
    """The operand A or B with its k renamed."""
    layout = operand.layout
    if operand.name == "a":
        slots = tuple(layout.slot(row, x) for row in range(layout.rows) for x in k)
    else:
        slots = tuple(layout.slot(x, column) for x in k for column in range(layout.columns))
    return replace(operand, layout=replace(layout, slots=slots))


@st.composite
def shuffled(draw: st.DrawFn) -> Intrinsic:
    """An instruction of a copied library, with lanes, registers and k in other orders.

    Those of A and B are drawn each for itself: nothing has to lie alike.
    """
    plain = find(draw(st.sampled_from(INSTRUCTIONS)))

    def anywhere(operand: Operand) -> Operand:
        registers = draw(orders(operand.layout.elements_per_lane))
        natural = range(operand.layout.lanes)
        lanes = draw(orders(operand.layout.lanes)) if draw(st.booleans()) else natural
        moved = reordered(operand, lanes, registers)
        if operand.name == "c" or draw(st.booleans()):
            return moved
        return of_other_k(moved, draw(orders(plain.k)))

    return replace(plain, a=anywhere(plain.a), b=anywhere(plain.b), c=anywhere(plain.c))


@pytest.mark.thorough
@pytest.mark.parametrize("scope", [None, "shared"])
@given(intrinsic=shuffled(), b_transposed=st.booleans(), a_transposed=st.booleans())
@settings(max_examples=30 if ALL else 12, deadline=None, suppress_health_check=list(HealthCheck))
def test_it_is_right(
    scope: str | None, intrinsic: Intrinsic, b_transposed: bool, a_transposed: bool
) -> None:
    m, n, k = (2 * extent for extent in (intrinsic.m, intrinsic.n, intrinsic.k))
    if scope is None:
        m, n, k = m + 5, n + 8, 2 * k
    gemm = Gemm(
        intrinsic, "gfx942", m, n, k, b_transposed, scope, a_transposed and scope is None
    )  # fmt: skip
    kernel, arrays = gemm.build(), gemm.operands()
    emulate(kernel, list(arrays), trusted=[intrinsic])
    assert gemm.compare(*arrays).agrees


@given(intrinsic=shuffled())
@settings(max_examples=30, deadline=None)
def test_upright_is_reached_at_once(intrinsic: Intrinsic) -> None:
    found = upright(intrinsic)
    assert upright(found) is found
