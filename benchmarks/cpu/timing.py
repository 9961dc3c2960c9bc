"""Timing contenders side by side, with what `examples.cpu_matmul_exp.measure` says of fairness.

The environment is what that module wants; contenders take turns of several runs, with a pause
between them, since threads that wait disturb others; the fastest run of each counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from examples.cpu_matmul_exp.measure import environment
from mfmadsl.host.cpu import host_cpu

_STARTED = "MFMADSL_BENCHMARK_THREADS"
_PAUSE = 0.05
_LONGEST = 0.25  # seconds of a turn


class Timed(NamedTuple):
    """Seconds of one call: the fastest, and the median."""

    least: float
    median: float


def model_name() -> str:
    """What Linux calls this CPU, and LLVM."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    told = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(told, 'a CPU without a name')} ({host_cpu().name})"


def fresh(threads: int) -> None:
    """Start this program anew, where all libraries have so many threads and choose by the CPU.

    What was imported before, with other threads, is gone then.
    """
    if os.environ.get(_STARTED) == str(threads):
        return
    changed = environment(threads, os.environ) | {_STARTED: str(threads)}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], changed)


def side_by_side(calls: Sequence[Callable[[], object]], turns: int = 4) -> list[Timed]:
    """How long each call takes, in turns."""
    taken: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(turns):
        for call, own in zip(calls, taken, strict=True):
            time.sleep(_PAUSE)
            end = time.perf_counter() + _LONGEST
            # To the end, also where a call is short: two threads that woke up on one core part only
            # after some 20 ms.
            while len(own) == 0 or time.perf_counter() < end:
                start = time.perf_counter()
                call()
                own.append(time.perf_counter() - start)
    return [Timed(min(own), median(own)) for own in taken]
