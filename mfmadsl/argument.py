"""Checking what public functions are given, before it gets where a mistake cannot be told.

TVM ends the process for some wrong types, and NumPy takes many that are not meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from operator import index
from pathlib import Path
from typing import Any, TypeVar

from mfmadsl.error import ArgumentError, ArgumentTypeError

Value = TypeVar("Value")

LARGEST_EXTENT = 2**31 - 1
"""TVM's loops count in 32 bits."""


def check_type(name: str, value: object, kinds: type | tuple[type, ...], spoken: str) -> None:
    """Raise ArgumentTypeError unless `value` is one of `kinds`, which are called `spoken`."""
    if not isinstance(value, kinds):
        raise ArgumentTypeError(f"{name}: is {spoken}, not {described(value)}")


def check_extent(name: str, value: object) -> int:
    """A number of rows, columns or the like, as an int; NumPy's integers are taken, too.

    Raises ArgumentError or ArgumentTypeError unless it is one from 1 to 2^31 - 1.
    """
    number = check_integer(name, value)
    if not 1 <= number <= LARGEST_EXTENT:
        raise ArgumentError(f"{name}: is a number from 1 to 2^31 - 1, not {described(number)}")
    return number


def check_integer(name: str, value: object) -> int:
    """`value` as an int; ArgumentTypeError if it is no integer. True and False are none."""
    if not isinstance(value, bool):
        try:
            return index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ArgumentTypeError(f"{name}: is an integer, not {described(value)}")


def check_path(name: str, value: object) -> Path:
    """A str or an os.PathLike as a Path. Raises ArgumentError or ArgumentTypeError."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"{name}: is a path, not {described(value)}")
    text = os.fsdecode(value)
    if not text or "\0" in text:
        raise ArgumentError(f"{name}: {described(text)} is no path")
    return Path(text)


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise ArgumentTypeError or ArgumentError, listing those known, unless `value` is of them."""
    check_type(name, value, str, "a str")
    known = list(known)
    if value not in known:
        raise ArgumentError(f"{name}: there is no {described(value)}, but: {', '.join(known)}")


_LONGEST = 60


def clipped(text: str) -> str:
    """A text of any length for a message."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def described(value: object) -> str:
    """The value for a message: short, whatever it is, even if it cannot be printed."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, int) and abs(value) >= 10**_LONGEST:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, str | int | float):
        return repr(clipped(value)) if isinstance(value, str) else repr(value)
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"
