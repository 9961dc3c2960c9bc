"""What is fetched, by sizes that have no room in 32 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tvm import ir, tirx
from tvm.sym import Analyzer

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.moves.element import MemorySource
from mfmadsl.passes.main_loop.moves.fetch import Fetch, fetch_of, inside, loadable
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import constant, depends, i32, substitute

K, LANE, BLOCK, N = (tirx.Var(name, "int32") for name in ("k", "lane", "block", "n"))
LARGEST = (1 << 31) - 1


def facts(turns: int = 2, blocks: int = 16, lean: bool = False) -> Loop:
    """A loop of so many turns, in so many workgroups of a wave."""
    analyzer = Analyzer()
    for variable, extent in ((K, turns), (LANE, 64), (BLOCK, blocks)):
        analyzer.bind(variable, ir.Range(0, extent))
    analyzer.bind(N, ir.Range(1, LARGEST))
    count = tirx.const(turns, "int32")
    return Loop(K, count, analyzer, analyzer, {"lane": 64}, frozenset({"n"}), lean)


def fetch(
    elements: Any, place: Any, turns: int = 2, blocks: int = 16, dtype: str = "float16",
    count: int = 1,
) -> Fetch:  # fmt: skip
    """So many elements of a buffer, of a lane and a workgroup."""
    buffer = tirx.decl_buffer((elements,), dtype, "A")
    return fetch_of(
        [MemorySource(buffer, place + n, ()) for n in range(count)], facts(turns, blocks), 0
    )


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


def test_a_tile_spans_less_than_31_bits() -> None:
    """Of lanes far apart: 536870911 words, and one more."""
    apart = LANE * ((1 << 29) // 63)
    most = (1 << 29) - 63 * ((1 << 29) // 63) - 1
    assert fetch(LARGEST, apart + (most - 1), dtype="float32").offset is not None
    with pytest.raises(NotUnderstoodError, match="a tile of `A` spans 2147483648 bytes, which"):
        fetch(LARGEST, apart + most, dtype="float32")


@pytest.mark.parametrize(
    ("row", "elements", "shifted"),
    [(64, 4096, False), (64, 4095, True), (66, 4096, False), (64, 4098, False)],
)
def test_words_are_loaded_where_they_surely_lie(row: int, elements: int, shifted: bool) -> None:
    """Two halves each, of rows that are aligned, in a buffer of whole words or of a part more."""
    assert fetch(elements, K * row + LANE * 2, count=2).is_shifted == shifted
    assert fetch(elements, K * row + LANE * 2 + 1, count=2).is_shifted


def test_rows_that_are_aligned_otherwise_from_turn_to_turn() -> None:
    told = "is aligned otherwise from iteration to iteration"
    with pytest.raises(NotUnderstoodError, match=told):
        fetch(4096, K * 65 + LANE * 2, count=2)


@pytest.mark.parametrize(
    ("place", "elements", "together"),
    [(LANE * 2, 4096, True), (LANE * 2, 4095, False), (LANE * 2 + 1, 4096, False),
     (LANE * 3, 4096, False)],
)  # fmt: skip
def test_less_than_a_word_is_loaded_together_where_it_surely_lies(
    place: Any, elements: int, together: bool
) -> None:
    buffer = tirx.decl_buffer((elements,), "int8", "A")
    run = [MemorySource(buffer, place + n, ()) for n in range(2)]
    assert [len(piece) for piece in loadable(run)] == ([2] if together else [1, 1])


def test_a_load_starts_in_the_buffer() -> None:
    """By its place, or by a condition; those that may not all start there are loaded one by one."""
    buffer = tirx.decl_buffer((4096,), "float32", "A")

    def loads(*conditions: Any) -> int:
        run = [MemorySource(buffer, LANE - 5 + n, conditions) for n in range(4)]
        return len(inside(run, facts(), 0, True))

    assert loads(LANE >= 5) == 1
    with pytest.raises(NotUnderstoodError, match=r"`A\[lane - 5\]` may lie before its first"):
        loads()
    guarded = [MemorySource(buffer, LANE - 1 + n, (LANE + n >= 1,)) for n in range(4)]
    assert [len(each.run) for each in inside(guarded, facts(), 0, True)] == [1, 1, 1, 1]


def lean_fetch(place: Any, count: int = 8, turns: int = 2, elements: int = 1 << 20) -> Fetch:
    """Halves, where addresses are shared."""
    buffer = tirx.decl_buffer((elements,), "float16", "A")
    run = [MemorySource(buffer, place + n, ()) for n in range(count)]
    return fetch_of(run, facts(turns, lean=True), 0)


@pytest.mark.parametrize(
    ("place", "ahead"),
    [(LANE * 8 + 4096, 8192), (4096 + LANE * 8, 8192), (LANE * 8, 0),
     (LANE * 8 + 4097, 0),  # the aligned words around it are another lane's own
     (LANE * 8 - 64 + 4096, 8064), (4096 - LANE * 8, 0)],
    ids=str,
)  # fmt: skip
def test_a_constant_that_several_fetches_differ_by_is_a_scalar(place: Any, ahead: int) -> None:
    found = lean_fetch(place + K * 64)
    assert found.address.ahead == ahead
    *_, offset, step = found.arguments(K)
    assert not depends(offset, K)
    at_2 = Analyzer().simplify(substitute(step, {K: tirx.const(2, "int32")}))
    assert constant(at_2) == 2 * 64 * 2 + ahead


def test_a_scalar_has_room_for_the_constant_too() -> None:
    """31 bits, of which the turns alone take nearly all."""
    far = (1 << 30) - 4096
    near = lean_fetch(LANE * 8 + K * (far // 4), turns=4, elements=1 << 31)
    also = lean_fetch(LANE * 8 + 8192 + K * (far // 4), turns=4, elements=1 << 31)
    assert not moves_its_origin(near)
    assert moves_its_origin(also)


def test_a_scalar_and_a_lanes_offset_have_room_together() -> None:
    """Beyond 2^31 bytes from its base a descriptor has nothing, and a load gives zeros."""
    rows = LANE * (((1 << 30) - (1 << 16)) // 63)
    assert not moves_its_origin(fetch(1 << 32, rows + K * 256, turns=64))
    assert moves_its_origin(fetch(1 << 32, rows + K * 256, turns=512))


@pytest.mark.parametrize("blocks", [1, 16])
def test_the_last_part_of_a_word_far_ahead_is_at_no_lanes_offset(blocks: int) -> None:
    """Its place has 32 bits, as an offset has, and is a multiple of four only where it is near."""
    length = (1 << 31) + 9  # of halves
    found = fetch(length, BLOCK * (1 << 27) + LANE * 2 + 1, blocks=blocks, count=2)
    assert found.tail is not None
    (place,) = (each.value for each in found.binds if each.var.same_as(found.tail.place))
    for block in range(blocks):
        left = (length * 2 & ~3) - block * (1 << 28)
        at = Analyzer().simplify(substitute(place, {BLOCK: i32(block)}))
        assert constant(at) == min(left, LARGEST)


def test_the_words_around_all_turns_have_offsets() -> None:
    """The last word of a buffer is found by its offset from the first that any turn reads."""
    with pytest.raises(NotUnderstoodError, match="a tile of `A` spans"):
        fetch(LARGEST, K * (1 << 22) + LANE * 2 + 1, turns=1 << 10, count=2)


@pytest.mark.parametrize(("elements", "direct"), [(4096, True), (4090, False)])
def test_what_may_go_straight_into_the_lds(elements: int, direct: bool) -> None:
    """Of 16 bytes that are partly past the end nothing is sure to arrive."""
    buffer = tirx.decl_buffer((elements,), "float16", "A")
    run = [MemorySource(buffer, LANE * 8 + n, (LANE * 8 + n < elements,)) for n in range(8)]
    assert fetch_of(run, facts(), 0, exact=False).can_be_direct == direct


PAGE = tirx.Var("page", "int32")
PAGES = tirx.decl_buffer((20,), "int32", "pages")


def paged(step: int = 0, condition: Any = None) -> Fetch:
    """Eight neighbours of the page that `pages[k + lane // 32]` names."""
    loop = facts()
    loop.analyzer.bind(PAGE, ir.Range(0, 30))
    buffer, asked = (
        tirx.decl_buffer((30 * 640,), "float16", "A"),
        (condition,) * (condition is not None),
    )
    sources = [MemorySource(buffer, PAGE * 640 + LANE * 8 + step + n, asked) for n in range(8)]
    return fetch_of(sources, replace(loop, gathered={PAGE: PAGES[K + LANE // 32]}), 0)


def test_the_page_of_the_next_iteration_is_read_with_the_elements_of_this_one() -> None:
    found = paged()
    (index,) = found.indices
    assert found.loads == 2
    elements, page = found.fetch(K, False, K + 1)
    assert elements.buffer.same_as(found.registers)
    assert index.register.name in str(elements.value)
    assert not depends(elements.value, PAGE)
    assert page.buffer.same_as(index.register)
    assert "(k + 1 + lane // 32) * 4" in str(page)


def test_elements_of_pages_do_not_go_straight_into_the_lds() -> None:
    assert not paged().can_be_direct


@pytest.mark.parametrize(
    ("step", "condition", "told"),
    [(1, None, r"lies is .* no whole word"), (0, PAGE < 7, r"^whether `A\[.*\]` is there is read")],
)
def test_a_page_tells_neither_alignment_nor_whether_there_is_an_element(
    step: int, condition: Any, told: str
) -> None:
    with pytest.raises(NotUnderstoodError, match=told):
        paged(step, condition)
