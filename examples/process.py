"""The processes of the examples' commands: how they end, and those that share the work."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

INTERRUPTED = 130


def exit_code(main: Callable[[], int]) -> int:
    """That of `main`; 1 without a word if nobody reads any more, 130 after an interrupt."""
    try:
        code = main()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python would flush once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


@contextmanager
def answering(jobs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """What asks a function all questions and gives the answers in order, of several processes."""
    if jobs == 1:
        yield map
        return
    # A fork would share TVM's threads, so that each process starts anew.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _leave_interrupts) as pool:
        yield pool.map


def _leave_interrupts() -> None:
    """The process that waits for those of a pool tells of an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
