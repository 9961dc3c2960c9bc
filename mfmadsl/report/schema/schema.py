"""The JSON schema of what the command line prints as JSON."""

from __future__ import annotations

from typing import Any

from mfmadsl.report.schema.entries import entries
from mfmadsl.report.schema.findings import findings
from mfmadsl.report.schema.kernel import kernel
from mfmadsl.report.schema.laboratory import laboratory
from mfmadsl.report.schema.layouts import layouts


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12; `$defs` has each form by itself."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What mfmadsl prints as JSON",
        "anyOf": [
            {"$ref": "#/$defs/layout"},
            {"$ref": "#/$defs/vectors"},
            {"$ref": "#/$defs/read"},
            {
                "type": "array",
                "items": {
                    "anyOf": [{"$ref": "#/$defs/intrinsic"}, {"$ref": "#/$defs/microkernel"}]
                },
            },
            {"$ref": "#/$defs/check"},
            {"$ref": "#/$defs/doctor"},
            {"type": "array", "items": {"$ref": "#/$defs/fault"}},
            {"$ref": "#/$defs/profile"},
            {"$ref": "#/$defs/kernel"},
            {"$ref": "#/$defs/export"},
            {"$ref": "#/$defs/difference"},
        ],
        "$defs": {**entries(), **findings(), **laboratory(), **kernel(), **layouts()},
    }
