"""What is read ahead of a loop, and where the places that it leads to may lie."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import ir, tirx
from tvm.sym import Analyzer
from tvm.tirx import BufferStore, For, ForKind, IfThenElse, PrimFunc, SeqStmt

from mfmadsl.model import architecture
from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel, Threads
from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.main_loop.moves.element import MemorySource, element
from mfmadsl.passes.main_loop.moves.fetch import fetch_of
from mfmadsl.passes.main_loop.moves.gathered import Gathered, gathered_ahead
from mfmadsl.passes.tir.expression import depends, loads_of, substitute, variables_of

K, LANE = (tirx.Var(name, "int32") for name in ("k", "lane"))
ROW, ROWS = 96, 21
X = tirx.decl_buffer((ROWS * ROW,), "float16", "x")
INDEX = tirx.decl_buffer((64,), "int32", "index")
TILE = tirx.decl_buffer((4096,), "float16", "tile", scope="shared")


def analyzer() -> Analyzer:
    known = Analyzer()
    for variable, extent in ((K, 3), (LANE, 32)):
        known.bind(variable, ir.Range(0, extent))
    return known


def copy(place: Any, condition: Any = None, at: Any = LANE) -> BufferStore:
    """tile[at] = x[place], or 0 where the condition does not hold."""
    value = X[place]
    if condition is not None:
        value = tirx.if_then_else(condition, value, tirx.const(0, "float16"))
    return BufferStore(TILE, value, [at])


def ahead(*copies: Any, writes: Any = TILE) -> tuple[list[Any], Gathered]:
    body = SeqStmt([*copies, BufferStore(writes, tirx.const(0, str(writes.dtype)), [0])])
    loop = For(K, 0, 3, ForKind.SERIAL, body)
    threads = Threads({"threadIdx.x": LANE}, {"threadIdx.x": 32})
    instructions = MatrixInstructions({})
    kernel = EnclosingKernel(
        PrimFunc([], loop), threads, analyzer(), architecture("gfx942"), instructions
    )
    return gathered_ahead(copies, loop, kernel, analyzer())


def ends(*copies: Any) -> list[tuple[int, int]]:
    """The first and the last that each index of these copies may be."""
    named, gathered = ahead(*copies)
    within = gathered.within([element(each) for each in named], analyzer())
    spans = [within.ranges[variable] for variable in within.values if variable in within.ranges]
    return [(int(span.min), int(span.min) + int(span.extent) - 1) for span in spans]


def test_an_index_becomes_a_variable() -> None:
    (named,), gathered = ahead(copy(INDEX[LANE] * ROW + K * 32))
    (load,) = loads_of(named)
    assert load.source.same_as(X)
    (value,) = gathered.values.values()
    assert str(value) == str(INDEX[LANE])


@pytest.mark.parametrize("place", [K, LANE + K, K * 20 + LANE // 2])
def test_one_that_changes_in_the_loop_has_one_too(place: Any) -> None:
    (named,), gathered = ahead(copy(INDEX[place] * ROW + K))
    (load,) = loads_of(named)
    assert load.source.same_as(X)
    ((variable, value),) = gathered.values.items()
    assert str(value) == str(INDEX[place])
    assert gathered.moving == {variable}
    assert gathered.statements({}) == []  # nothing of it is known ahead of the loop


def test_one_that_changes_may_lie_where_one_that_stays_says() -> None:
    _, gathered = ahead(copy(INDEX[INDEX[LANE] + K] * ROW))
    row, page = gathered.values
    assert gathered.moving == {page}
    assert str(gathered.values[page]) == str(INDEX[row + K])
    assert [bind.var for bind in gathered.statements({})] == [row]


@pytest.mark.parametrize("place", [INDEX[K], INDEX[LANE] + INDEX[K], INDEX[INDEX[LANE] + K]])
def test_one_that_lies_where_another_that_changes_says_stays(place: Any) -> None:
    """That would take two iterations."""
    (named,), gathered = ahead(copy(INDEX[place] * ROW))
    assert not gathered.values
    assert str(named) == str(copy(INDEX[place] * ROW))


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint32"])
def test_one_that_changes_and_has_not_32_bits_stays(dtype: str) -> None:
    other = tirx.decl_buffer((64,), dtype, "other")
    assert not ahead(copy(tirx.Cast("int32", other[K]) * ROW))[1].values


def test_one_that_changes_and_that_a_condition_asks_stays() -> None:
    assert not ahead(copy(LANE * ROW + K, INDEX[K] < ROWS))[1].values


def test_one_that_changes_is_kept_within_the_array() -> None:
    (named,), gathered = ahead(copy(INDEX[K] * ROW + LANE % ROW))
    within = gathered.within([element(named)], analyzer())
    ((variable, value),) = within.values.items()
    assert str(value) == str(tirx.max(tirx.min(INDEX[K], ROWS - 1), 0))
    assert within.moving == {variable}


def test_one_that_the_kernel_writes_stays() -> None:
    assert not ahead(copy(INDEX[LANE] * ROW), writes=INDEX)[1].values


def test_copies_of_one_row_share_its_index() -> None:
    row = INDEX[LANE // 4] * ROW
    copies = [copy(row + n, at=LANE + 32 * n) for n in range(4)]
    assert len(ahead(*copies)[1].values) == 1


def test_what_a_condition_asks_is_not_kept_within_the_array() -> None:
    _, gathered = ahead(copy(INDEX[LANE] * ROW, INDEX[LANE] < ROWS))
    asked, reached = gathered.values
    (named,), _ = ahead(copy(INDEX[LANE] * ROW, INDEX[LANE] < ROWS))
    within = gathered.within([element(named)], analyzer())
    assert not within.ranges or asked not in within.ranges
    assert not asked.same_as(reached)


def test_a_read_that_a_condition_guards_is_guarded() -> None:
    """Lanes past the last index read none."""
    _, gathered = ahead(copy(INDEX[LANE * 3] * ROW, LANE * 3 < 64))
    (value,) = gathered.values.values()
    assert "if_then_else" in str(value)


def test_a_read_that_the_loop_guards_has_to_exist() -> None:
    assert ahead(copy(INDEX[LANE] * ROW, K * 32 + LANE < 70))[1].values
    assert not ahead(copy(INDEX[LANE * 3] * ROW, K * 32 + LANE < 20))[1].values


def test_a_read_of_the_first_iteration_may_be_guarded_in_later_ones() -> None:
    """What K ends in the middle of a step does not ask which row a lane reads."""
    inside = LANE * 3 < 64
    of_step = K * 32 + LANE < 70
    for condition in (tirx.And(inside, of_step), tirx.And(of_step, inside)):
        (value,) = ahead(copy(INDEX[LANE * 3] * ROW, condition))[1].values.values()
        assert "lane < 22" in str(value)
        assert "k" not in {v.name for v in variables_of(value)}
    assert not ahead(copy(INDEX[LANE * 3] * ROW, tirx.And(inside, K * 32 + LANE < 31)))[1].values


def test_a_guard_is_a_condition() -> None:
    guarded = IfThenElse(LANE * 3 < 64, copy(INDEX[LANE * 3] * ROW), None)
    (value,) = ahead(guarded)[1].values.values()
    assert "if_then_else" in str(value)


def test_what_is_no_copy_of_an_index_is_left_alone() -> None:
    plain = copy(LANE * ROW + K * 32)
    named, gathered = ahead(plain)
    assert named[0].same_as(plain)
    assert not gathered.values


def test_an_index_that_leads_nowhere_stays_within_the_array_even_so() -> None:
    (named,), gathered = ahead(copy(INDEX[LANE] * ROW + K * 32 + LANE))
    within = gathered.within([element(named)], analyzer())
    (value,) = within.values.values()
    assert str(value) == str(tirx.max(tirx.min(INDEX[LANE], ROWS - 1), 0))


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (K * 32 + LANE, (0, ROWS - 1)),  # a whole row
        (K * 32 + LANE + ROW, (-1, ROWS - 2)),  # the row after it
        (K * 32 + LANE + 1, (-1, ROWS - 1)),  # one element more than a row
    ],
)
def test_an_index_leads_into_its_array(rest: Any, expected: tuple[int, int]) -> None:
    assert ends(copy(INDEX[LANE] * ROW + rest)) == [expected]


def test_any_of_two_places_may_be_the_one_that_is_wanted() -> None:
    """One index for two rows: the first row may lie before the array where the second does not."""
    first, second = (INDEX[0] * ROW + K * 32 + LANE + n * ROW for n in (0, 1))
    assert ends(copy(first), copy(second, at=LANE + 32)) == [(-1, ROWS - 1)]


def test_a_condition_bounds_the_rest_of_a_row() -> None:
    place = INDEX[LANE // 16] * ROW + K * 32 + LANE + 1
    assert ends(copy(place, K * 32 + LANE < 95)) == [(0, ROWS - 1)]


def test_what_is_made_of_an_index_alone_is_read_as_one() -> None:
    assert ends(copy((INDEX[LANE] // 2) * ROW + K * 32)) == [(0, ROWS - 1)]


@pytest.mark.parametrize("place", [INDEX[LANE] * INDEX[LANE] * ROW, (INDEX[LANE] * K) // 2])
def test_nothing_is_told_of_places_that_are_not_linear(place: Any) -> None:
    assert ends(copy(place)) == []


def test_lanes_that_exchange_what_they_load_read_each_others_indices() -> None:
    row, other = tirx.Var("index.0", "int32"), LANE ^ 5
    known = analyzer()
    known.bind(row, ir.Range(0, ROWS))
    loop = Loop(
        K, tirx.const(3, "int32"), known, known, {"lane": 32}, gathered={row: INDEX[LANE // 4]}
    )
    run = [MemorySource(X, row * ROW + K * 32 + LANE % 4, ())]
    fetch = fetch_of(run, loop, 0, exchanged={LANE: other})
    reads = [each for each in fetch.binds if loads_of(each.value)]
    assert [str(each.value) for each in reads] == [str(substitute(INDEX[LANE // 4], {LANE: other}))]
    assert depends(fetch.binds[-1].value, reads[0].var)


def test_a_place_in_a_page_is_computed_in_each_iteration() -> None:
    """It is not linear in the loop."""
    (named,), gathered = ahead(copy(INDEX[K // 2] * ROW + (K + LANE) % 2 * 4))
    page, place = gathered.values
    assert gathered.moving == {page, place}
    assert str(gathered.values[place]) == str((K + LANE) % 2)
    within = gathered.within([element(named)], analyzer())
    assert (int(within.ranges[place].min), int(within.ranges[place].extent)) == (0, 2)
    assert int(within.ranges[page].extent) == ROWS


def test_an_index_of_what_nobody_ever_wants_leads_to_the_beginning() -> None:
    (named,), gathered = ahead(copy(INDEX[K] * ROW, tirx.And(K < 2, LANE >= 32)))
    within = gathered.within([element(named)], analyzer())
    (span,) = within.ranges.values()
    assert (int(span.min), int(span.extent)) == (0, 1)
