"""Several instructions as one deeper tile: the same product, and elements that lie together."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic, Layout, Operand, Packed, packed
from tests.registers import Array

HALF = find("mfma_f32_16x16x16_f16")
PLAIN = [i for i in library().values() if not i.sparse and not i.scales and i.blocks == 1]
EVERY = pytest.mark.parametrize("intrinsic", PLAIN, ids=lambda i: i.name)
COUNTS = pytest.mark.parametrize("count", [2, 3, 4])


@st.composite
def shuffled(draw: st.DrawFn) -> Intrinsic:
    """An instruction whose elements of A and of B lie anywhere, in orders of their own."""
    m, n = draw(st.sampled_from([(4, 16), (16, 4), (8, 32), (16, 16)]))
    k = draw(st.sampled_from([16, 32]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def anywhere(operand: Operand, rows: int, columns: int) -> Operand:
        places = list(product(range(64), range(rows * columns // 64)))
        slots = tuple(places[x] for x in generator.permutation(len(places)))
        return replace(operand, layout=Layout(rows, columns, 64, rows * columns // 64, slots))

    a, b = anywhere(HALF.a, m, k), anywhere(HALF.b, k, n)
    return replace(HALF, m=m, n=n, k=k, a=a, b=b)


def operands_of(tile: Packed, a: Array, b: Array) -> list[tuple[Array, Array]]:
    """What each instruction multiplies when the tile's A and B have been loaded."""
    one = tile.intrinsic
    found = []
    for whole, deep, plain in ((a, tile.a.layout, one.a.layout), (b, tile.b.layout, one.b.layout)):
        registers = np.full((deep.lanes, deep.elements_per_lane), -1, whole.dtype)
        for row, column in product(range(deep.rows), range(deep.columns)):
            registers[deep.slot(row, column)] = whole[row, column]
        taken = []
        for p in range(tile.count):
            own = registers[:, p * plain.elements_per_lane : (p + 1) * plain.elements_per_lane]
            places = product(range(plain.rows), range(plain.columns))
            values = [own[plain.slot(*place)] for place in places]
            taken.append(np.array(values).reshape(plain.rows, plain.columns))
        found.append(taken)
    return list(zip(*found, strict=True))


@given(shuffled(), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_each_k_is_multiplied_once_and_with_itself(one: Intrinsic, count: int) -> None:
    tile = packed(one, count)
    assert tile.k == count * one.k
    assert sorted(tile.order) == list(product(range(count), range(one.k)))
    names = np.arange(tile.k)
    a, b = np.tile(names, (one.m, 1)), np.tile(names[:, None], (1, one.n))
    seen: set[int] = set()
    for left, right in operands_of(tile, a, b):
        assert (left == left[0]).all()
        assert (right == left[0][:, None]).all()
        seen |= set(left[0].tolist())
    assert seen == set(range(tile.k))


@given(shuffled(), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_instructions_sum_up_to_the_product_of_the_tile(
    one: Intrinsic, count: int, seed: int
) -> None:
    tile, generator = packed(one, count), np.random.default_rng(seed)
    a = generator.integers(-9, 10, (one.m, tile.k))
    b = generator.integers(-9, 10, (tile.k, one.n))
    parts = np.array([left @ right for left, right in operands_of(tile, a, b)])
    assert (parts.sum(axis=0) == a @ b).all()


@given(shuffled(), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_the_layouts_of_a_tile_are_one_to_one_and_onto(one: Intrinsic, count: int) -> None:
    tile = packed(one, count)
    for layout in (tile.a.layout, tile.b.layout):
        assert set(layout.slots) == set(product(range(64), range(layout.elements_per_lane)))
        assert len(layout.slots) == len(set(layout.slots))


@EVERY
@COUNTS
def test_what_a_lane_holds_lies_together_along_k(intrinsic: Intrinsic, count: int) -> None:
    tile = packed(intrinsic, count)
    for operand, along in ((tile.a, 2), (tile.b, 1)):
        layout = operand.layout
        assert (
            layout.elements_per_lane
            == count * intrinsic.operand(operand.name).layout.elements_per_lane
        )
        for lane in range(layout.lanes):
            first = layout.element(lane, 0)
            held = [layout.element(lane, register) for register in range(layout.elements_per_lane)]
            assert [x[along] - first[along] for x in held] == list(range(layout.elements_per_lane))
            assert {x[3 - along] for x in held} == {first[3 - along]}


def test_chunks_of_one_instruction_lie_together_as_well() -> None:
    slots = [(i + 16 * (k // 4 % 4), k % 4 + 4 * (k // 16)) for i in range(16) for k in range(32)]
    a = replace(HALF.a, layout=Layout(16, 32, 64, 8, tuple(slots)))
    turned = tuple(slots[j * 32 + k] for k in range(32) for j in range(16))
    b = replace(HALF.b, layout=Layout(32, 16, 64, 8, turned))
    tile = packed(replace(HALF, k=32, a=a, b=b), 2)
    assert [k for p, k in tile.order[:8]] == [0, 1, 2, 3, 16, 17, 18, 19]
    assert [tile.a.layout.slot(0, k) for k in range(16)] == [(0, r) for r in range(16)]
    assert [tile.b.layout.slot(k, 0) for k in range(16)] == [(0, r) for r in range(16)]


@pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)
def test_one_instruction_stays_as_it_is(intrinsic: Intrinsic) -> None:
    tile = packed(intrinsic, 1)
    assert (tile.name, tile.k) == (intrinsic.name, intrinsic.k)
    assert (tile.a, tile.b) == (intrinsic.a, intrinsic.b)
    assert tile.order == tuple((0, k) for k in range(intrinsic.k))


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("mfma_f32_4x4x4_16b_f16", 2, "multiplies 16 blocks at once, so that 2 of it are no"),
        ("smfmac_f32_16x16x32_f16", 2, "is sparse, .* only k_pack=1 can be"),
        ("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp4", 3, "is scaled"),
        ("mfma_f32_16x16x16_f16", 129, "take 258 registers for `a`, but a lane has 256"),
        ("mfma_f32_16x16x16_f16", 0, "k_pack: is a number of instructions from 1 on, not 0"),
    ],
)
def test_what_is_no_deeper_tile(name: str, count: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        packed(library()[name], count)


def test_an_operand_may_fill_all_registers_of_a_lane() -> None:
    assert packed(library()["mfma_f32_16x16x16_f16"], 128).a.layout.elements_per_lane == 512


def test_a_number_of_instructions_is_an_integer() -> None:
    with pytest.raises(ArgumentTypeError, match="k_pack: is an integer, not True"):
        packed(HALF, True)


def test_what_a_lane_holds_follows_its_registers() -> None:
    """Of an instruction whose registers count down along k, and lanes as well."""

    def turned(operand: Operand) -> Operand:
        slots = tuple((63 - lane, 3 - register) for lane, register in operand.layout.slots)
        return replace(operand, layout=replace(operand.layout, slots=slots))

    tile = packed(replace(HALF, a=turned(HALF.a), b=turned(HALF.b)), 2)
    assert tile.order[:8] == tuple((p, k) for p in (0, 1) for k in (15, 14, 13, 12))
    assert [tile.a.layout.slot(0, k) for k in range(8)] == [(15, r) for r in range(8)]
