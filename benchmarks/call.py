"""What benchmarks are called with."""

from __future__ import annotations

import argparse


def command(doc: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark whose module has this docstring: `--help`, for a start."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def count(text: str) -> int:
    """A number, one or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number}, but it is one or more")
    return number
