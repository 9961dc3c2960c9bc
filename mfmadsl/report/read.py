"""Reads in which lanes exchange elements, for people to read."""

from __future__ import annotations

from typing import Any

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


def read_json(read: Read) -> dict[str, Any]:
    """For each register of each lane of a group, which count elements, the lane from whose address
    it comes, and which element after that address it is."""
    elements = []
    for lane in range(read.lanes):
        for register in range(read.registers):
            source, element = read.origin(lane, register)
            elements.append(
                {"lane": lane, "register": register, "from_lane": source, "element": element}
            )
    return {
        "kind": "read",
        "name": read.name,
        "bits": read.bits,
        "lanes": read.lanes,
        "registers": read.registers,
        "call": read.call,
        "chips": list(read.chips),
        "elements": elements,
    }
