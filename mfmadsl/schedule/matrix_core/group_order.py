"""In which order workgroups take the tiles of groups of rows.

A die gets blocks of tiles in turn, so that each has tiles of large groups and of small ones. All
tiles of a row share rows of A, and those of a group its matrix.
"""

from __future__ import annotations

from dataclasses import replace

from mfmadsl.model import Architecture, Tiling


def row_by_row(tiling: Tiling, columns: int, chip: Architecture) -> Tiling:
    """The tiling with tiles of a row one after the other, if a die has a row of tiles at once."""
    whole_row = -(-columns // tiling.block[1]) <= _at_once(chip)
    return replace(tiling, group=1) if whole_row else tiling


def blocks_at_a_time(tiling: Tiling, rows: int, columns: int, chip: Architecture) -> int:
    """How many blocks of tiles a die gets in turn: those of a group of so many rows, if it has as
    many at once."""
    of_group = -(-rows // (tiling.block[0] * tiling.group))
    at_once = _at_once(chip) // (-(-columns // tiling.block[1]) * tiling.group)
    return max(1, min(of_group, at_once))


def _at_once(chip: Architecture) -> int:
    """The workgroups that a die has at once, if a compute unit has one."""
    return chip.compute_units // chip.dies
