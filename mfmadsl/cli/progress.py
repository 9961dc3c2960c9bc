"""How far long work has come, on a terminal: a line on standard error that is wiped at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic

import click

Progress = Callable[[int, int], None]

_WIPE = "\r\x1b[K"  # to the start of the line, and erase to its end (ECMA-48)

_SOON = 2  # seconds, before which nobody asks


@dataclass(frozen=True)
class ProgressRate:
    """When work began, and when which first part of it was done: what comes before tells little."""

    began: float
    mark: tuple[int, float] | None = None

    def with_mark(self, done: int, now: float) -> ProgressRate:
        """The pace that knows of the first part; one of other work starts anew."""
        if self.mark is not None and done < self.mark[0]:
            return ProgressRate(now)
        return replace(self, mark=(done, now)) if self.mark is None and done else self

    def told(self, done: int, total: int, now: float) -> str:
        """How long it has taken, and how long it is going to, once that can be told."""
        taken = now - self.began
        if taken < _SOON:
            return ""
        if self.mark is None or done == self.mark[0]:
            return f", {_spoken(taken)}"
        first, at = self.mark
        left = (total - done) * (now - at) / (done - first)
        return f", {_spoken(taken)}, about {_spoken(left)} left"


def _spoken(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def shown(work: str) -> Iterator[Progress | None]:
    """What takes workgroups done and all of them; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    pace = ProgressRate(monotonic())

    def tell(done: int, total: int) -> None:
        nonlocal pace
        pace = pace.with_mark(done, monotonic())
        told = f"{_WIPE}{work} {done} of {total} workgroups{pace.told(done, total, monotonic())}"
        click.echo(told, nl=False, err=True, color=True)

    try:
        yield tell
    finally:
        click.echo(_WIPE, nl=False, err=True, color=True)
