"""Files that a command writes."""

from __future__ import annotations

from pathlib import Path

import click

from mfmadsl.cli.failure import fail


def write_text(path: Path, text: str) -> None:
    """Write a file, or end the command with what keeps it from being written."""
    from mfmadsl.output import OutputError, write_file  # who writes nothing does without

    try:
        write_file(path, text.encode())
    except OutputError as error:
        fail(str(error))


def write_report(path: Path, page: str) -> None:
    """Write a page, and say so beside what the command prints; or end it as `write_text` does."""
    write_text(path, page)
    click.echo(f"wrote {path}", err=True)
