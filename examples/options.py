"""The options that the examples' commands have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mfmadsl.output import OutputError, check_output


def add_step(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """--step, which chooses among the steps of a ladder."""
    parser.add_argument(
        "--step", action="append", choices=names, metavar="STEP",
        help=f"only this one; may be repeated. Of {', '.join(names)}",
    )  # fmt: skip


def add_files(parser: argparse.ArgumentParser, name: str) -> None:
    """--json and --svg of the ladder of that name."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all of it as JSON")
    parser.add_argument(
        "--svg", type=Path, metavar="FILE", default=Path(f"{name}.svg"),
        help=f"where the plot goes, {name}.svg",
    )  # fmt: skip


def add_outputs(parser: argparse.ArgumentParser, name: str) -> None:
    """--json, --svg and --jobs of the ladder of that name."""
    add_files(parser, name)
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 65), default=2, metavar="N",
        help="processes at once, 2",
    )  # fmt: skip


def check_outputs(*paths: Path | None) -> None:
    """Raise OutputError for a path that cannot be written, before minutes of work and not after."""
    for path in paths:
        if path is not None:
            check_output(str(path))
            if not path.parent.is_dir():
                raise OutputError(f"{path}: cannot be written: there is no such folder")
