"""Which tile of C a workgroup computes: an order in which neighbours share what is in the L2.

Workgroups go to the dies of a chip in turn, and each die has an L2 of its own. So tiles are dealt
out such that a die gets consecutive ones, and consecutive tiles form blocks of `group` rows: they
share their columns of B while those of A stay in the cache.
"""

from __future__ import annotations

from typing import Any

from mfmadsl.tensorize.gemm import emit


def tile_of(workgroup: Any, rows: Any, columns: Any, dies: int, group: int) -> tuple[Any, Any]:
    """(row, column) of the tile for a workgroup's number below rows * columns: one to one."""
    return _in_groups(_by_die(workgroup, rows * columns, dies), rows, columns, group)


def _by_die(number: Any, tiles: Any, dies: int) -> Any:
    if dies == 1:
        return number
    # The first dies get one tile more, where they do not come out even.
    each, more = tiles // dies, tiles % dies
    die, turn = number % dies, number // dies
    return die * each + emit.least(die, more) + turn


def _in_groups(number: Any, rows: Any, columns: Any, group: int) -> tuple[Any, Any]:
    block, inside = number // (group * columns), number % (group * columns)
    height = emit.least(rows - block * group, group)
    return block * group + inside % height, inside // height
