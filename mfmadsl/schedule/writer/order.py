"""Which tile of C a workgroup computes: an order in which neighbours share what is in the L2.

Workgroups go to the dies of a chip in turn, and each die has an L2 of its own. So tiles are dealt
out such that a die gets consecutive ones, and consecutive tiles form blocks of `group` rows: they
share their columns of B while those of A stay in the cache.
"""

from __future__ import annotations

from typing import Any

from mfmadsl.schedule.writer import emit


def by_die(number: Any, tiles: Any, dies: int) -> Any:
    """The tile of a workgroup, both by their numbers, such that a die has consecutive tiles."""
    if dies == 1:
        return number
    # The first dies get one tile more, where they do not come out even.
    each, more = tiles // dies, tiles % dies
    die, turn = number % dies, number // dies
    return die * each + emit.least(die, more) + turn


def in_groups(number: Any, rows: Any, columns: Any, group: int) -> tuple[Any, Any]:
    """(row, column) of a tile by its number: consecutive ones form blocks of `group` rows."""
    block, inside = number // (group * columns), number % (group * columns)
    height = emit.least(rows - block * group, group)
    return block * group + inside % height, inside // height
