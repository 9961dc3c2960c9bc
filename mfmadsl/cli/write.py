"""Files that a command writes."""

from __future__ import annotations

from pathlib import Path

from mfmadsl.cli.failure import fail


def write_text(path: Path, text: str) -> None:
    """Write a file, or end the command with what keeps it from being written."""
    from mfmadsl.output import OutputError, write_file  # who writes nothing does without

    try:
        write_file(path, text.encode())
    except OutputError as error:
        fail(str(error))
