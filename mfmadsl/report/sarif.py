"""Faults as SARIF 2.1.0, which forges show as annotations beside the lines of a file.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mfmadsl.version import __version__

if TYPE_CHECKING:
    from mfmadsl.emulator.error import Fault

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Located:
    """A fault, the kernel that it is of, and the file with that kernel's assembly text; that of a
    code object is not `text`, so that no line of it can be shown."""

    kernel: str
    file: str
    fault: Fault
    text: bool = True


def sarif_json(faults: Iterable[Located]) -> str:
    """One run with a result for each fault."""
    found = list(faults)
    kinds = sorted({each.fault.kind for each in found})
    driver = {
        "name": "mfmadsl",
        "version": __version__,
        "rules": [{"id": kind} for kind in kinds],
    }
    run = {"tool": {"driver": driver}, "results": [_result(each) for each in found]}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(found: Located) -> dict[str, Any]:
    """Where the source is known the fault is in its line, and related to that of the text."""
    fault = found.fault
    places = [_location(found.file, fault.line if found.text else None, fault.instruction)]
    if fault.source is not None:
        file, _, line = fault.source.rpartition(":")
        places.insert(0, _location(_near(file), int(line), None))
    related = [{**place, "message": {"text": "the instruction"}} for place in places[1:]]
    if fault.earlier is not None and found.text:
        place = _location(found.file, fault.earlier.line, fault.earlier.instruction)
        related.append({**place, "message": {"text": f"what wave {fault.earlier.wave} did before"}})
    result: dict[str, Any] = {
        "ruleId": fault.kind,
        "level": "error",
        "message": {"text": f"{found.kernel}: {fault.message}"},
        "locations": places[:1],
    }
    return {**result, "relatedLocations": related} if related else result


def _near(path: str) -> str:
    """A path as from the folder of this process, where it lies in it."""
    try:
        return Path(path).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path


def _location(file: str, line: int | None, text: str | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": file}}
    if line is not None:
        place["region"] = {"startLine": line}
        if text:
            place["region"]["snippet"] = {"text": text}
    return {"physicalLocation": place}
