"""Checking what public functions are given, before it gets where a mistake cannot be told.

TVM ends the process for some wrong types, and NumPy takes many that are not meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from operator import index
from pathlib import Path
from typing import Any, TypeVar

from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.nearest import or_meant

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


def three_extents(name: str, extents: object) -> tuple[int, int, int]:
    """One to three positive numbers as three. Raises ArgumentError for anything else."""
    given = described(extents)
    if isinstance(extents, tuple | list):
        given = f"({', '.join(map(described, extents[:4]))})"
    message = f"{name} is one to three positive numbers, such as (4, 4), not {given}"
    if not isinstance(extents, Sequence) or isinstance(extents, str | bytes | bytearray):
        raise ArgumentTypeError(message)
    if not 1 <= len(extents) <= 3 or any(check_integer(name, e) < 1 for e in extents):
        raise ArgumentError(message)
    x, y, z = (*(check_extent(name, e) for e in extents), 1, 1, 1)[:3]
    return x, y, z


def check_integer(name: str, value: object) -> int:
    """`value` as an int; ArgumentTypeError if it is no integer. True and False are none."""
    if not isinstance(value, bool):
        try:
            return index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ArgumentTypeError(f"{name}: is an integer, not {described(value)}")


def check_flag(name: str, value: object) -> None:
    """Raise ArgumentTypeError unless `value` is True or False."""
    check_type(name, value, (bool, *_numpy_bool(value)), "True or False")


def _numpy_bool(value: object) -> tuple[type, ...]:
    """NumPy's own bool, without importing NumPy for those who do not use it."""
    kind = type(value)
    return (kind,) if (kind.__module__, kind.__name__) in _NUMPY_BOOLS else ()


_NUMPY_BOOLS = {("numpy", "bool"), ("numpy", "bool_")}


def check_list(name: str, value: object, spoken: str) -> None:
    """Raise ArgumentTypeError unless `value` is a list, a tuple or the like, and no text."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise ArgumentTypeError(f"{name}: is {spoken}, not {described(value)}")


def check_path(name: str, value: object) -> Path:
    """A str or an os.PathLike as a Path. Raises ArgumentError or ArgumentTypeError."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"{name}: is a path, not {described(value)}")
    text = os.fsdecode(value)
    try:
        possible = bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a character
        possible = False
    if not possible:
        raise ArgumentError(f"{name}: {described(text)} is no path")
    return Path(text)


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise ArgumentTypeError or ArgumentError, listing those known, unless `value` is of them."""
    check_type(name, value, str, "a str")
    known = list(known)
    if value not in known:
        told = f"{name}: there is no {described(value)}, but: {', '.join(known)}"
        raise ArgumentError(told + or_meant(value, known))


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
