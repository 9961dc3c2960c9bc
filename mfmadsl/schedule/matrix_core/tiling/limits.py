"""What a workgroup can have on a chip, said in the same words by every schedule."""

from __future__ import annotations

from math import prod

from mfmadsl.model import Architecture
from mfmadsl.schedule.error import ScheduleError


def check_threads(where: str, waves: tuple[int, ...], lanes: int, chip: Architecture) -> None:
    """Raise ScheduleError, naming `where`, if so many waves along M and N, and K, are too many."""
    threads = prod(waves) * lanes
    if threads > chip.max_threads:
        several = " x ".join(map(str, waves))
        raise ScheduleError(
            f"{where}: {several} waves of {lanes} lanes are {threads} threads, "
            f"more than the {chip.max_threads} of a workgroup"
        )


def check_lds(where: str, tiles: str, size: int, chip: Architecture) -> None:
    """Raise ScheduleError, naming `where`, if the tiles do not fit into the LDS."""
    if size > chip.lds_bytes:
        raise ScheduleError(
            f"{where}: {tiles} take {size} bytes of LDS, more than the {chip.lds_bytes} "
            f"of {chip.name}"
        )
