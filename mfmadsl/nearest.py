"""Names that are nearly what somebody wrote."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

_COMPARED = 300
_LISTED = 40
_LIKE = 0.6
_FEW = 5


def nearest(name: str, known: Sequence[str], count: int = 1, likeness: float = _LIKE) -> list[str]:
    """The known names that are like a name, the nearest first, or like it but for its capitals;
    maybe none."""
    # Comparing two names takes the product of their lengths, and this is done for each mistake.
    name, known = name[:_COMPARED], known[:_COMPARED]
    if near := get_close_matches(name, known, count, likeness):
        return near
    small = {each.lower(): each for each in known}
    return [small[each] for each in get_close_matches(name.lower(), small, count, likeness)]


def meant(near: Sequence[str]) -> str:
    """A question after the names that may be meant."""
    quoted = [f"`{each}`" for each in near]
    *others, last = quoted
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A hint that names the nearest of `known`, or lists them when none is near."""
    if near := nearest(name, known):
        return meant(near)
    listed = sorted(known)[:_LISTED]
    rest = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"there are: {', '.join(listed)}{rest}" if known else ""


def among_many(name: str, known: Sequence[str]) -> str:
    """A hint where there are too many names to list: the nearest one, or up to five that have a
    part that is like the name, and how to see all."""
    if near := nearest(name, known):
        return meant(near)
    parts = {part for each in known for part in each.split("_") if len(part) > 1}
    like = nearest(name, sorted(parts))
    alike = [each for each in known if like and like[0] in each.split("_")][:_FEW]
    told = f"near it are {', '.join(alike)}; " if alike else ""
    return f"{told}`mfmadsl list` lists all"


def or_meant(name: str, known: Sequence[str]) -> str:
    """What is added to a message that lists all names: the nearest one, if any is near."""
    near = nearest(name, known, likeness=0.5)
    return f"; {meant(near)}" if near else ""
