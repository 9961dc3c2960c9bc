"""`overlapped`: what it moves computes the same, and stands where a wave waits for nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from tvm import tirx

from mfmadsl.passes.main_loop.analysis.element_wise import Statement, overlapped

REGISTERS = tirx.decl_buffer((64,), "float32", "registers", scope="local")
HANDLE = REGISTERS.__chandle__()


def statement(is_matrix: bool, target: int, *sources: int) -> Statement:
    """One that computes a register of others; a matrix instruction also of itself."""
    value: Any = tirx.const(0, "float32")
    for source in sources:
        value = value + tirx.BufferLoad(REGISTERS, [source])
    reads = {*sources, target} if is_matrix else set(sources)
    return Statement(
        tirx.BufferStore(REGISTERS, value, [target]), is_matrix,
        frozenset((HANDLE, n) for n in reads), frozenset({(HANDLE, target)}),
    )  # fmt: skip


def computed(steps: Sequence[Sequence[Statement]]) -> dict[Any, Any]:
    """What each register holds in the end, as how it came about."""
    held: dict[Any, Any] = {}
    for step in steps:
        for each in step:
            made = hash((id(each), *(held.get(source, source) for source in sorted(each.reads))))
            held.update(dict.fromkeys(each.writes, made))
    return held


@pytest.mark.parametrize("seed", range(50))
def test_any_statements_compute_the_same(seed: int) -> None:
    draw = random.Random(seed)

    def drawn() -> Statement:
        sources = draw.sample(range(9), draw.randrange(3))
        return statement(draw.random() < 0.4, draw.randrange(9), *sources)

    steps = [[drawn() for _ in range(draw.randrange(1, 12))] for _ in range(draw.randrange(1, 5))]
    moved = overlapped(steps, ())
    assert computed(moved) == computed(steps)
    for before, after in zip(steps, moved, strict=True):
        assert [s for s in before if s.is_matrix] == [s for s in after if s.is_matrix]


def test_what_is_between_two_products_goes_under_both() -> None:
    first = [[statement(True, tile, 60) for _ in range(4)] for tile in range(4)]
    between = [statement(False, 8 + tile, tile) for tile in range(4)]
    second = [[statement(True, 32, 8 + tile) for _ in range(4)] for tile in range(4)]
    moved = overlapped([*first[:3], first[3] + between, *second], ())
    flat = [s for step in moved for s in step]
    places = [flat.index(s) for s in between]
    matrix = [n for n, s in enumerate(flat) if s.is_matrix]
    for tile, place in enumerate(places):
        needed, needing = flat.index(first[tile][-1]), flat.index(second[tile][0])
        assert needed + 1 < place < needing  # not right behind what it waits for
    assert all(later - earlier <= 2 for earlier, later in pairwise(matrix))


def test_constants_stand_right_before_they_are_needed() -> None:
    fill = statement(False, 1)
    products = [statement(True, 0, 60), statement(True, 0, 60), statement(True, 1, 60)]
    (moved,) = overlapped([[fill, *products]], ())
    assert moved == [*products[:2], fill, products[2]]


def test_computing_of_fragments_comes_no_earlier_than_its_register_step() -> None:
    steps = [
        [statement(True, 0, 60) for _ in range(4)],
        [*(statement(False, 1 + n, 61) for n in range(8)), statement(True, 20, *range(1, 9))],
    ]
    assert overlapped(steps, [HANDLE]) == steps
    assert overlapped(steps, []) != steps


def test_computing_of_fragments_goes_under_later_instructions() -> None:
    """What scales the sums of a row of tiles, and adds them up, does so under the next row."""
    rows = [[statement(True, 8 * row + tile, 60) for tile in range(4)] for row in range(2)]
    scaled = [statement(False, 32 + tile, tile, 61) for tile in range(4)]
    first, second = overlapped([[*rows[0], *scaled], rows[1]], [HANDLE])
    assert not any(s in first[: first.index(rows[0][1])] for s in scaled)
    assert any(s in second for s in scaled)
    assert computed([first, second]) == computed([[*rows[0], *scaled], rows[1]])
