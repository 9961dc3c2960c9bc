"""The processes of the examples' commands: how they end, and those that share the work."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Protocol, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")

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


class Answers(Protocol):
    """Asks a function all questions, and gives the answers in their order.

    `name_of` says what a question is called: a line on standard error tells when it is answered.
    """

    def __call__(
        self,
        function: Callable[[Question], Answer],
        questions: Sequence[Question],
        name_of: Callable[[Question], str],
    ) -> list[Answer]: ...


def tell(name: str, begun: float) -> None:
    """Say on standard error what is done, and how many seconds after the work began."""
    print(f"{time.monotonic() - begun:5.0f} s  {name}", file=sys.stderr, flush=True)


@contextmanager
def answering(jobs: int) -> Iterator[Answers]:
    """What asks, in so many processes."""
    begun = time.monotonic()
    if jobs == 1:

        def one_by_one(
            function: Callable[[Question], Answer],
            questions: Sequence[Question],
            name_of: Callable[[Question], str],
        ) -> list[Answer]:
            found = []
            for question in questions:
                found.append(function(question))
                tell(name_of(question), begun)
            return found

        yield one_by_one
        return
    # A fork would share TVM's threads, so that each process starts anew.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _leave_interrupts) as pool:

        def several(
            function: Callable[[Question], Answer],
            questions: Sequence[Question],
            name_of: Callable[[Question], str],
        ) -> list[Answer]:
            asked = {pool.submit(function, question): question for question in questions}
            for each in as_completed(asked):
                each.result()  # what one of them raises ends the rest
                tell(name_of(asked[each]), begun)
            return [each.result() for each in asked]

        yield several


def _leave_interrupts() -> None:
    """The process that waits for those of a pool tells of an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
