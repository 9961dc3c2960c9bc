"""What workgroups share: counted by hand, and beside what the caches of an MI355X were seen to do.

HipKittens (arXiv 2511.08083, table 4) measured the hit rates of the L2s and of the cache behind
them for products of tiles of 192 x 256, whose workgroups go over C in some order.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mfmadsl.emulator.machine.launch import load_arguments
from mfmadsl.emulator.profiler.sharing import FirstSteps, first_steps
from mfmadsl.emulator.run import BUDGET, launch_of
from tests.emulator.profiler.tile_orders import (
    LARGE,
    LINE,
    READS_TWO_LINES,
    SMALL,
    Order,
    by_dies,
    by_rows,
    hits,
    of_tiles,
)


@pytest.mark.parametrize(
    ("order", "tiles", "measured"),
    [
        (by_rows(57), LARGE, (0.36, 0.76)),
        (by_dies(76 * 57, 57, 8, 541), LARGE, (0.79, 0.07)),
        (by_dies(76 * 57, 57, 8, 64), LARGE, (0.78, 0.55)),
        (by_dies(48 * 36, 36, 7, 216), SMALL, (0.79, 0.24)),
        (by_dies(48 * 36, 36, 5, 25), SMALL, (0.75, None)),
    ],
)
def test_hit_rates_are_near_those_that_were_measured(
    order: Order, tiles: tuple[int, int], measured: tuple[float, float | None]
) -> None:
    """The matrices of the smaller product nearly fit the cache behind the L2s, which then keeps
    more from one round to the next than is counted here."""
    l2, behind = hits(of_tiles(order, *tiles, 256))
    assert l2 == pytest.approx(measured[0], abs=0.065)
    if measured[1] is not None:
        assert behind == pytest.approx(measured[1], abs=0.1)


def test_a_line_counts_once_for_each_die_and_once_for_the_chip() -> None:
    """32 workgroups on 4 dies: all read line 0, and each of them one of its own."""
    found = of_tiles(lambda number: (0, number), 1, 32, 32, dies=4)
    assert found.sharing.die == (4 + 32) / 64
    assert found.sharing.chip == (1 + 32) / 64


def test_rounds_are_looked_at_one_by_one() -> None:
    """Two workgroups share both lines, and two others one of them: what the rounds have in common
    is asked for in each."""
    table = np.array([(0, 1), (0, 1), (0, 2), (0, 3)], np.int32) * LINE
    memory = np.zeros(4 * LINE, np.uint8)
    launch = launch_of(READS_TWO_LINES, (4,), (64,), None)
    load = partial(load_arguments, launch, [table, memory], True)
    rounds = [np.array([0, 1]), np.array([2, 3])]
    found = first_steps(launch, load, rounds, [0], 1, LINE, None, BUDGET)
    assert found.sharing.chip == (2 + 3) / 8
    assert found.average == 1


def test_workgroups_that_share_nothing() -> None:
    found = of_tiles(lambda number: (number, number), 300, 300, 300)
    assert (found.sharing.die, found.sharing.chip) == (1, 1)


def test_workgroups_that_share_all() -> None:
    found = of_tiles(lambda number: (0, 0), 1, 1, 64, dies=1)
    assert found.sharing.die == found.sharing.chip == 2 / 128


def test_what_is_read_is_all_of_the_arguments_that_are() -> None:
    """The table goes through the scalar cache, and does not count."""
    assert of_tiles(by_rows(8), 8, 8, 64).footprint == 16 * LINE


def test_a_load_across_the_end_of_a_line_asks_for_both() -> None:
    """The last lane of the first workgroup begins in line 0, the second one reads line 1."""
    table, memory = np.array([(1, 1), (LINE, LINE)], np.int32), np.zeros(2 * LINE, np.uint8)
    launch = launch_of(READS_TWO_LINES, (2,), (64,), None)
    load = partial(load_arguments, launch, [table, memory], True)
    found = first_steps(launch, load, [np.arange(2)], [0], 1, LINE, None, BUDGET)
    assert found.sharing.die == found.sharing.chip == 2 / 3


def test_workgroups_at_an_edge_lower_the_average() -> None:
    """The first one reads two lines, the other nine read one twice."""
    found = of_tiles(lambda number: (1, 0) if number == 0 else (1, -1), 2, 1, 10, dies=1)
    assert found.average == pytest.approx((2 + 9) / 10 / 2)


def with_lanes_of_the_last(reads: str) -> FirstSteps:
    """Four workgroups; the last one, in scc, has other loads."""
    table, memory = np.zeros((4, 2), np.int32), np.zeros(LINE, np.uint8)
    other = READS_TWO_LINES.replace(
        "global_load_ushort v5, v3, s[8:9]", f"s_cmp_eq_u32 s2, 3\n{reads}"
    )
    launch = launch_of(other, (4,), (64,), None)
    load = partial(load_arguments, launch, [table, memory], True)
    return first_steps(launch, load, [np.arange(4)], [0], 1, LINE, None, BUDGET)


def test_who_reads_less_of_an_argument_than_others_reaches_over_its_edge() -> None:
    """Half of the lanes of the last of four workgroups leave out one of two loads."""
    found = with_lanes_of_the_last(
        """	s_cselect_b32 s12, 32, 64
	v_cmp_gt_u32_e32 vcc, s12, v0
	s_and_saveexec_b64 s[14:15], vcc
	global_load_ushort v5, v3, s[8:9]
	s_mov_b64 exec, s[14:15]"""
    )
    assert found.inside == pytest.approx((3 + (64 + 32) / 128) / 4)


@pytest.mark.parametrize("more", [0, 1, 3])
def test_a_workgroup_that_does_something_else_counts_in_full(more: int) -> None:
    """It executes fewer loads, or more, than the others."""
    load = "	global_load_ushort v5, v3, s[8:9]\n"
    found = with_lanes_of_the_last(
        f"""	s_cbranch_scc1 .Lother
	{load}	s_branch .Ltogether
.Lother:
{more * load}.Ltogether:"""
    )
    assert found.inside == 1
