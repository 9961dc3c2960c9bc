"""Instructions with their elements anywhere that a layout can say: GEMMs are right, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mfmadsl import Gemm, emulate, find
from mfmadsl.codegen import ModuleError
from mfmadsl.model import Intrinsic, Operand, upright
from mfmadsl.schedule import ScheduleError

INSTRUCTIONS = [
    "mfma_f32_16x16x16_f16",
    "mfma_f32_32x32x8_f16",
    "mfma_i32_16x16x32_i8",
    "mfma_f32_16x16x4_f32",
    "mfma_f32_16x16x16_bf16",
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


def of_other_k(a: Operand, b: Operand, k: Sequence[int]) -> tuple[Operand, Operand]:
    """Both with k renamed alike: the instruction is the same."""
    rows, columns = range(a.layout.rows), range(b.layout.columns)
    of_a = tuple(a.layout.slot(row, x) for row in rows for x in k)
    of_b = tuple(b.layout.slot(x, column) for x in k for column in columns)
    return (
        replace(a, layout=replace(a.layout, slots=of_a)),
        replace(b, layout=replace(b.layout, slots=of_b)),
    )


@st.composite
def shuffled(draw: st.DrawFn) -> Intrinsic:
    """An instruction of a copied library, with lanes, registers and k in other orders.

    Narrow elements of A and B are in registers in a common order: of others LLVM reads words of the
    LDS that are not aligned, which chips in that mode do, but not the emulator.
    """
    plain = find(draw(st.sampled_from(INSTRUCTIONS)))
    common = draw(orders(plain.a.layout.registers))

    def anywhere(operand: Operand) -> Operand:
        registers = draw(orders(operand.layout.registers)) if operand.type.bits == 32 else common
        natural = range(operand.layout.lanes)
        lanes = draw(orders(operand.layout.lanes)) if draw(st.booleans()) else natural
        return reordered(operand, lanes, registers)

    a, b, c = anywhere(plain.a), anywhere(plain.b), anywhere(plain.c)
    if draw(st.booleans()):
        a, b = of_other_k(a, b, draw(orders(plain.k)))
    return replace(plain, a=a, b=b, c=c)


@pytest.mark.parametrize("scope", [None, "shared"])
@given(intrinsic=shuffled(), b_transposed=st.booleans(), a_transposed=st.booleans())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_it_is_right_or_refused(
    scope: str | None, intrinsic: Intrinsic, b_transposed: bool, a_transposed: bool
) -> None:
    m, n, k = (2 * extent for extent in (intrinsic.m, intrinsic.n, intrinsic.k))
    if scope is None:
        m, n, k = m + 5, n + 8, 2 * k
    gemm = Gemm(
        intrinsic, "gfx942", m, n, k, b_transposed, scope, a_transposed and scope is None
    )  # fmt: skip
    try:
        kernel = gemm.build()
    except (ScheduleError, ModuleError):
        return
    arrays = gemm.operands()
    emulate(kernel, list(arrays), trusted=[intrinsic])
    assert gemm.compare(*arrays).agrees


@given(intrinsic=shuffled())
@settings(max_examples=30, deadline=None)
def test_upright_is_reached_at_once(intrinsic: Intrinsic) -> None:
    found = upright(intrinsic)
    assert upright(found) is found
