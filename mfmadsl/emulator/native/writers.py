"""Who writes the code of which forms."""

from __future__ import annotations

from collections.abc import Callable

from mfmadsl.emulator.native.code import Code
from mfmadsl.emulator.native.elementwise import write_row
from mfmadsl.emulator.native.form import Form


def _nothing(code: Code, form: Form) -> None:
    """What only passes."""


WRITERS: dict[str, Callable[[Code, Form], None]] = {
    "nothing": _nothing,
    "row": write_row,
}
