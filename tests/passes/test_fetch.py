"""What is fetched, by sizes that have no room in 32 bits."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import ir, tirx
from tvm.sym import Analyzer

from mfmadsl.passes.element import Source
from mfmadsl.passes.error import NotUnderstoodError
from mfmadsl.passes.expression import constant, depends, substitute
from mfmadsl.passes.fetch import Fetch, fetch_of
from mfmadsl.passes.loop import Loop

K, LANE, BLOCK, N = (tirx.Var(name, "int32") for name in ("k", "lane", "block", "n"))
LARGEST = (1 << 31) - 1


def fetch(
    elements: Any, place: Any, turns: Any = 2, blocks: int = 16, dtype: str = "float16"
) -> Fetch:
    """One element of a buffer, of a lane and a workgroup."""
    analyzer = Analyzer()
    ranges = {K: turns, LANE: 64, BLOCK: blocks}
    for variable, extent in ranges.items():
        analyzer.bind(variable, ir.Range(0, extent))
    analyzer.bind(N, ir.Range(1, LARGEST))
    buffer = tirx.decl_buffer((elements,), dtype, "A")
    facts = Loop(K, tirx.const(turns, "int32"), analyzer, analyzer, {"lane": 64}, frozenset({"n"}))
    return fetch_of([Source(buffer, place, ())], facts, 0)


def moves_its_origin(found: Fetch) -> bool:
    """Whether the turns are in the descriptor's base, which has 64 bits, and not in an offset."""
    _, origin, _, _, step = found.arguments(K)
    assert depends(origin, K) != depends(step, K)
    return depends(origin, K)


@pytest.mark.parametrize(("row", "far"), [(1 << 10, False), (1 << 19, True), (1 << 20, True)])
def test_turns_that_go_farther_than_an_offset(row: int, far: bool) -> None:
    """Of 2048 turns of a row of float16 each."""
    assert moves_its_origin(fetch(LARGEST, K * row + LANE, 1 << 11)) == far


@pytest.mark.parametrize("row", [1 << 18, (1 << 18) + 5])
def test_the_size_of_a_buffer_has_64_bits(row: int) -> None:
    _, _, size, _, _ = fetch(N * row, LANE).arguments(K)
    whole = Analyzer().simplify(substitute(size, {N: tirx.const(1 << 13, "int32")}))
    assert constant(whole) == (row << 13) * 2


def test_lanes_of_all_workgroups_span_the_buffer() -> None:
    """Where a place is no sum of the workgroup's and the lane's, all workgroups count."""
    found = fetch(N * 2145, (BLOCK * 32 + LANE) // 33 * 2145 + LANE, blocks=LARGEST)
    assert str(found.address.span) == 'T.Cast("int64", n) * T.int64(2145) * T.int64(2)'


def test_a_span_that_would_wrap_around() -> None:
    place = (BLOCK * 32 + LANE) // 33 * 2145 + LANE - K * 4
    with pytest.raises(NotUnderstoodError, match=r"a tile of `A` spans 279\d{9} bytes"):
        fetch(N * 2145, place + 400, blocks=1 << 26)
