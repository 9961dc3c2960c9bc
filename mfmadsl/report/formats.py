"""The formats that the library, a layout and a profile are told in.

Another one is a function that gives its text, in a file of its own, and a line here: the command
line offers what is listed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mfmadsl.model import Fragment, Intrinsic, Modifiers, Operand
from mfmadsl.report.intrinsic import intrinsic_json, intrinsic_table
from mfmadsl.report.layout import layout_json, layout_text
from mfmadsl.report.profile import profile_json, profile_table

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Profile


def as_json(value: object) -> str:
    """What `schema` describes, as people read it, too."""
    return json.dumps(value, indent=2)


LIBRARY: Mapping[str, Callable[[Sequence[Intrinsic]], str]] = {
    "table": intrinsic_table,
    "json": lambda intrinsics: as_json([intrinsic_json(each) for each in intrinsics]),
}
LAYOUT: Mapping[str, Callable[[Intrinsic | Fragment, Operand, Modifiers], str]] = {
    "table": layout_text,
    "json": lambda *what: as_json(layout_json(*what)),
}
PROFILE: Mapping[str, Callable[[Profile], str]] = {
    "table": profile_table,
    "json": lambda profile: as_json(profile_json(profile)),
}
