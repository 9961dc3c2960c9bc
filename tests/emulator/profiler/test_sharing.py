"""What workgroups share: counted by hand, and beside what the caches of an MI355X were seen to do.

HipKittens (arXiv 2511.08083, table 4) measured the hit rates of the L2s and of the cache behind
them for products of tiles of 192 x 256, whose workgroups go over C in some order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from mfmadsl.emulator.machine.launch import load_arguments
from mfmadsl.emulator.profiler.sharing import FirstSteps, first_steps
from mfmadsl.emulator.run import BUDGET, launch_of
from tests.emulator.waves import kernel

LINE = 128
READS_TWO_LINES = kernel(
    """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_load_dwordx2 s[8:9], s[0:1], 0x8
	s_lshl_b32 s6, s2, 3
	s_waitcnt lgkmcnt(0)
	s_add_u32 s4, s4, s6
	s_addc_u32 s5, s5, 0
	s_load_dwordx2 s[10:11], s[4:5], 0x0
	v_lshlrev_b32_e32 v1, 1, v0
	s_waitcnt lgkmcnt(0)
	v_add_u32_e32 v2, s10, v1
	v_add_u32_e32 v3, s11, v1
	global_load_ushort v4, v2, s[8:9]
	global_load_ushort v5, v3, s[8:9]
	s_waitcnt vmcnt(0)""",
    arguments=2,
).replace("gfx942", "gfx950")
"""Workgroup w reads the lines of memory whose offsets are the two numbers w of a table."""

Order = Callable[[int], tuple[int, int]]


def of_tiles(order: Order, rows: int, columns: int, groups: int, dies: int = 8) -> FirstSteps:
    """Of workgroups that read one line for their row of tiles and one for their column."""
    places = [order(number) for number in range(groups)]
    table = np.array([(row, rows + column) for row, column in places], np.int32) * LINE
    memory = np.zeros((rows + columns) * LINE, np.uint8)
    launch = launch_of(READS_TWO_LINES, (groups,), (64,), None)
    load = partial(load_arguments, launch, [table, memory], True)
    return first_steps(launch, load, groups, [0], dies, LINE, None, BUDGET)


def by_rows(columns: int) -> Order:
    return lambda number: divmod(number, columns)


def by_dies(tiles: int, columns: int, high: int, chunk: int, dies: int = 8) -> Order:
    """HipKittens' algorithm 1: `chunk` tiles together for a die, in blocks of `high` rows."""

    def order(number: int) -> tuple[int, int]:
        cycle = dies * chunk
        if number < tiles // cycle * cycle:
            local = number // dies
            number = local // chunk * cycle + number % dies * chunk + local % chunk
        block, rest = divmod(number, high * columns)
        rows = min(high, tiles // columns - block * high)
        return block * high + rest % rows, rest // rows

    return order


def hits(found: FirstSteps) -> tuple[float, float]:
    """Of the L2s, and of the cache behind them."""
    return 1 - found.sharing.die, 1 - found.sharing.chip / found.sharing.die


LARGE, SMALL = (76, 57), (48, 36)
"""Rows and columns of tiles of products of 14592 and of 9216 cubed."""


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


def test_workgroups_that_share_nothing() -> None:
    found = of_tiles(lambda number: (number, number), 300, 300, 300)
    assert (found.sharing.die, found.sharing.chip) == (1, 1)


def test_workgroups_that_share_all() -> None:
    found = of_tiles(lambda number: (0, 0), 1, 1, 64, dies=1)
    assert found.sharing.die == found.sharing.chip == 2 / 128


def test_what_is_read_is_all_of_the_arguments_that_are() -> None:
    """The table goes through the scalar cache, and does not count."""
    assert of_tiles(by_rows(8), 8, 8, 64).footprint == 16 * LINE


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
    return first_steps(launch, load, 4, [0], 1, LINE, None, BUDGET)


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
