"""Reads in which lanes exchange elements, for people to read."""

from __future__ import annotations

from mfmadsl.model import Read, closed_form


def read_summary(read: Read) -> str:
    """A read's entry in words: its shape, what emits it, and where each element comes from."""
    lines = [f"{read.name}: {read.lanes} lanes exchange what they read from the LDS"]
    if read.doc:
        lines += ["", *read.doc.splitlines()]
    lines += [
        "",
        f"shape   bits={read.bits} lanes={read.lanes} registers={read.registers}",
        f"call    {read.call}",
        f"chips   {' '.join(read.chips)}",
    ]
    box = {"lane": read.lanes, "register": read.registers}
    forms = [closed_form(lambda *at, part=part: read.origin(*at)[part], box) for part in (0, 1)]
    if all(form is not None for form in forms):
        lines.append(f"from    lane = {forms[0]}, element = {forms[1]}")
    return "\n".join(lines)
