"""Workgroups that read a line for their row of tiles and one for their column, in some order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

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
    return first_steps(launch, load, [np.arange(groups)], [0], dies, LINE, None, BUDGET)


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
