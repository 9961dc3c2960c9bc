"""How far long work has come, on a terminal: a line on standard error that is wiped at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Progress = Callable[[int, int], None]

_WIPE = "\r\x1b[K"  # to the start of the line, and erase to its end (ECMA-48)


@contextmanager
def shown(work: str) -> Iterator[Progress | None]:
    """What takes workgroups done and all of them; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    def tell(done: int, total: int) -> None:
        click.echo(f"{_WIPE}{work} {done} of {total} workgroups", nl=False, err=True, color=True)

    try:
        yield tell
    finally:
        click.echo(_WIPE, nl=False, err=True, color=True)
