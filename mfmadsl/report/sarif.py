"""Faults as SARIF 2.1.0, which forges show as annotations beside the lines of a file.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mfmadsl.version import __version__

if TYPE_CHECKING:
    from mfmadsl.emulator.error import Fault

_BASE = "SRCROOT"
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Located:
    """A fault, the kernel that it is of, and the path of the file with that kernel's assembly text;
    that of a code object is not `text`, so that no line of it can be shown."""

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
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_BASE: {"uri": f"{_root().as_uri().removesuffix('/')}/"}},
        "results": [_result(each) for each in found],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(found: Located) -> dict[str, Any]:
    """Where the source is known the fault is in its line, and related to that of the text."""
    fault = found.fault
    places = [_location(found.file, fault.line if found.text else None, fault.instruction)]
    if fault.source is not None:
        file, _, line = fault.source.rpartition(":")
        places.insert(0, _location(file, int(line), None))
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


def _root() -> Path:
    """The repository that this process is in, or its folder: where forges begin paths."""
    here = Path.cwd()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), here)


def _artifact(file: str) -> dict[str, str]:
    """A file, as from the root where it lies in it (SARIF 3.4.3 and 3.4.4)."""
    whole = Path(os.path.abspath(file))  # links stay as they are called
    root = _root()
    if whole.is_relative_to(root):
        return {"uri": quote(whole.relative_to(root).as_posix()), "uriBaseId": _BASE}
    return {"uri": whole.as_uri()}


def _location(file: str, line: int | None, text: str | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if line is not None:
        place["region"] = {"startLine": line}
        if text:
            place["region"]["snippet"] = {"text": text}
    return {"physicalLocation": place}
