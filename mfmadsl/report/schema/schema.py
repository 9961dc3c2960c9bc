"""The JSON schema of what the command line prints as JSON."""

from __future__ import annotations

from typing import Any

from mfmadsl.report.schema.entries import entries
from mfmadsl.report.schema.findings import findings
from mfmadsl.report.schema.forms import array, ref
from mfmadsl.report.schema.kernel import kernel
from mfmadsl.report.schema.laboratory import laboratory
from mfmadsl.report.schema.layouts import layouts


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12; `$defs` has each form by itself."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What mfmadsl prints as JSON",
        "anyOf": [
            ref("layout"),
            ref("vectors"),
            ref("read"),
            array({"anyOf": [ref("intrinsic"), ref("microkernel")]}),
            ref("check"),
            ref("doctor"),
            array(ref("fault")),
            ref("profile"),
            ref("kernel"),
            ref("export"),
            ref("difference"),
        ],
        "$defs": {**entries(), **findings(), **laboratory(), **kernel(), **layouts()},
    }
