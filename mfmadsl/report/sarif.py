"""Faults as SARIF 2.1.0, which forges show as annotations beside the lines of a file.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mfmadsl.version import __version__

if TYPE_CHECKING:
    from mfmadsl.emulator.error import Fault

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Located:
    """A fault, the kernel that it is of, and the file with that kernel's assembly text."""

    kernel: str
    file: str
    fault: Fault


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
    fault = found.fault
    result: dict[str, Any] = {
        "ruleId": fault.kind,
        "level": "error",
        "message": {"text": f"{found.kernel}: {fault.message}"},
        "locations": [_location(found.file, fault.line, fault.instruction)],
    }
    if fault.earlier is not None:
        result["relatedLocations"] = [
            {**_location(found.file, fault.earlier.line, fault.earlier.instruction),
             "message": {"text": f"what wave {fault.earlier.wave} did before"}}
        ]  # fmt: skip
    return result


def _location(file: str, line: int | None, text: str | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": file}}
    if line is not None:
        place["region"] = {"startLine": line}
        if text:
            place["region"]["snippet"] = {"text": text}
    return {"physicalLocation": place}
