"""What a workgroup can have on a chip, said in the same words by every schedule."""

from __future__ import annotations

from mfmadsl.model import Architecture
from mfmadsl.schedule.error import ScheduleError


def check_threads(where: str, waves: tuple[int, int], lanes: int, chip: Architecture) -> None:
    """Raise ScheduleError, naming `where`, if so many waves along M and N are too many threads."""
    threads = waves[0] * waves[1] * lanes
    if threads > chip.max_threads:
        raise ScheduleError(
            f"{where}: {waves[0]} x {waves[1]} waves of {lanes} lanes are {threads} threads, "
            f"more than the {chip.max_threads} of a workgroup"
        )


def check_lds(where: str, tiles: str, size: int, chip: Architecture) -> None:
    """Raise ScheduleError, naming `where`, if the tiles do not fit into the LDS."""
    if size > chip.lds_bytes:
        raise ScheduleError(
            f"{where}: {tiles} take {size} bytes of LDS, more than the {chip.lds_bytes} "
            f"of {chip.name}"
        )
