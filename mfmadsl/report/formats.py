"""The formats that the library, a layout, a difference and a profile are told in.

Another one is a function that gives its text, in a file of its own, and a line here: the command
line offers what is listed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mfmadsl.model import Intrinsic, Microkernel
from mfmadsl.report.difference import difference_json, difference_text
from mfmadsl.report.intrinsic import intrinsic_json, intrinsic_table
from mfmadsl.report.microkernel import microkernel_json, microkernel_table
from mfmadsl.report.picture.json import look_json
from mfmadsl.report.picture.look import Look, grids_of
from mfmadsl.report.picture.page import look_page
from mfmadsl.report.picture.svg import svg
from mfmadsl.report.picture.table import look_text
from mfmadsl.report.profile import profile_json, profile_table

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Profile
    from mfmadsl.export import Difference


class Window(NamedTuple):
    """Where text goes: how many characters are in a line, if that is known, and whether colours
    are shown."""

    width: int | None = None
    colours: bool = False


def as_json(value: object) -> str:
    """What `schema` describes, as people read it, too."""
    return json.dumps(value, indent=2)


def _library_table(intrinsics: Sequence[Intrinsic], microkernels: Sequence[Microkernel]) -> str:
    """A table of each kind of which there are any; of nothing the head of the first."""
    tables = [microkernel_table(microkernels)] if microkernels else []
    if intrinsics or not tables:
        tables.insert(0, intrinsic_table(intrinsics))
    return "\n\n".join(tables)


LIBRARY: Mapping[str, Callable[[Sequence[Intrinsic], Sequence[Microkernel]], str]] = {
    "table": _library_table,
    "json": lambda intrinsics, microkernels: as_json(
        [*map(intrinsic_json, intrinsics), *map(microkernel_json, microkernels)]
    ),
}
LAYOUT: Mapping[str, Callable[[Look, Window], str]] = {
    "table": lambda look, window: look_text(look, window.width, window.colours),
    "json": lambda look, _: as_json(look_json(look)),
    "svg": lambda look, _: svg(grids_of(look)),
    "html": lambda look, _: look_page(look),
}
PROFILE: Mapping[str, Callable[[Profile], str]] = {
    "table": profile_table,
    "json": lambda profile: as_json(profile_json(profile)),
}
DIFFERENCE: Mapping[str, Callable[[Difference], str]] = {
    "text": difference_text,
    "json": lambda difference: as_json(difference_json(difference)),
}
