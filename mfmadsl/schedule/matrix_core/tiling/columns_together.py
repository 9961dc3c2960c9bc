"""Columns of C that one wave has to store: those of a group that shares a scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mfmadsl.model import Intrinsic, Tiling
from mfmadsl.schedule.error import ScheduleError


@dataclass(frozen=True)
class ColumnsTogether:
    """So many neighbours, from a multiple of `count` on. Tiles take columns `in_turn`, if they may,
    such that lanes side by side hold them though an instruction has fewer columns."""

    count: int = 1
    in_turn: bool = True

    def are_held_by(self, intrinsic: Intrinsic) -> bool:
        """Whether tiles of an instruction, in turn if they may be, have them in one wave."""
        return intrinsic.n >= self.count or self.in_turn

    def are_kept_by(self, tiling: Tiling, intrinsic: Intrinsic) -> bool:
        """Whether lanes side by side of one wave store them."""
        if self.count == 1:
            return True
        if tiling.split_k > 1 and not tiling.one_launch:  # a kernel that adds parts up has rows
            return True
        if tiling.split_k > 1 or tiling.k_waves > 1:  # who adds parts up has rows of a tile
            return tiling.block[1] % self.count == 0
        return self.are_held_by(intrinsic) and tiling.wave_tile[1] % self.count == 0

    def kept(self, tiling: Tiling, intrinsic: Intrinsic) -> Tiling | None:
        """The tiling with so few waves side by side that each stores them, and as many above one
        another instead as there are rows for; None where no number of waves does."""
        above, beside = tiling.waves
        while beside > 1 and (tiling.block[1] // beside) % self.count:
            beside //= 2
            if tiling.block[0] % (2 * above * intrinsic.m) == 0:
                above *= 2
        found = replace(tiling, waves=(above, beside))
        return found if self.are_kept_by(found, intrinsic) else None

    def check(self, tiling: Tiling, intrinsic: Intrinsic) -> None:
        """Raise ScheduleError for a tiling that does not keep them."""
        if not self.are_kept_by(tiling, intrinsic):
            raise ScheduleError(
                f"tiling: {self.count} neighbouring columns of C make a result, and lie in several"
                f" waves of {tiling.wave_tile[0]} x {tiling.wave_tile[1]}: take a wave tile of a"
                f" multiple of {self.count} columns, and an instruction of as many where B lies as"
                " K x N"
            )


ANY_COLUMNS = ColumnsTogether()
"""Those of a product whose columns may be stored by any wave."""


def columns_together(count: int, columns: object, turned: bool) -> ColumnsTogether:
    """The columns of a product with so many that a wave stores together; `turned` says that LDS
    reads transpose B, so that tiles cannot take columns in turn. Of a single group they cannot."""
    return ColumnsTogether(count, not turned and columns != count)
