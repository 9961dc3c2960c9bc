"""What the commands of ladders write and say in the end, after their tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from examples.figure import NoPlotError
from mfmadsl.output import write_file


def write_files(
    asked: argparse.Namespace, picture: Callable[[], bytes], content: Callable[[], Any]
) -> list[str]:
    """Write the plot, and JSON if it is asked for, and say where; what is to be noted of them.

    Raises OutputError for a file that cannot be written.
    """
    notes = []
    try:
        write_file(asked.svg, picture())
        print(f"plot        {asked.svg}")
    except NoPlotError as error:
        notes.append(str(error))
    if asked.json is not None:
        write_file(asked.json, (json.dumps(content(), indent=2) + "\n").encode())
        print(f"JSON        {asked.json}")
    return notes


def conclude(
    notes: Sequence[str], count: int, agreement: str, wrong: Sequence[str], more: Sequence[str] = ()
) -> int:
    """Say how many of so many agree, what is `wrong` with the others, and what `more` is wrong;
    the exit code. `agreement` says what agrees with what."""
    for note in notes:
        print(f"note        {note}")
    print(f"numbers     {count - len(wrong)} of {count} {agreement}")
    for sentence in (*wrong, *more):
        print(f"error: {sentence}", file=sys.stderr)
    return 1 if wrong or more else 0
