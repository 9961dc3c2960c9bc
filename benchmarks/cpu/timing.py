"""Timing two contenders side by side: NumPy's OpenBLAS, and ours.

Two traps. The environment may name another kernel for OpenBLAS than the CPU's (OPENBLAS_CORETYPE),
or another size of its caches (OPENBLAS_L2_SIZE): `fresh` starts anew without them. And the threads
of two pools disturb each other, since those that wait spin: contenders take turns of several runs,
with a pause between them, and the fastest run of each counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

_NAMES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
_STARTED = "MFMADSL_BENCHMARK_THREADS"
_PAUSE = 0.05
_LONGEST = 0.25  # seconds of a turn


class Timed(NamedTuple):
    """Seconds of one call: the fastest, and the median."""

    least: float
    median: float


def fresh(threads: int) -> None:
    """Start this program anew, where all libraries have so many threads and choose by the CPU.

    It must be called before NumPy and TVM are imported.
    """
    if os.environ.get(_STARTED) == str(threads):
        return
    environment = {name: value for name, value in os.environ.items() if name not in _NAMES}
    number = str(threads)
    environment |= {_STARTED: number, "OPENBLAS_NUM_THREADS": number, "TVM_NUM_THREADS": number}
    environment |= {"OMP_NUM_THREADS": number, "OMP_WAIT_POLICY": "passive"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def side_by_side(calls: Sequence[Callable[[], object]], turns: int = 4) -> list[Timed]:
    """How long each call takes, in turns."""
    taken: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(turns):
        for call, own in zip(calls, taken, strict=True):
            time.sleep(_PAUSE)
            end = time.perf_counter() + _LONGEST
            while len(own) == 0 or time.perf_counter() < end:
                start = time.perf_counter()
                call()
                own.append(time.perf_counter() - start)
                if len(own) % 200 == 0:
                    break
    return [Timed(min(own), median(own)) for own in taken]
