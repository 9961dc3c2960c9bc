"""Faults as SARIF: what a forge needs to show them beside lines."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from mfmadsl.emulator.error import EarlierAccess, Fault
from mfmadsl.report.sarif import Located, sarif_json

# What of the standard's schema a forge asks for (SARIF 2.1.0, sections 3.13, 3.14, 3.27 and 3.28).
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "message": TEXT,
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {"type": "object", "required": ["uri"]},
                "region": {
                    "type": "object",
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
    },
}
RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "level", "locations"],
    "properties": {
        "message": TEXT,
        "level": {"enum": ["none", "note", "warning", "error"]},
        "locations": {"type": "array", "items": LOCATION, "minItems": 1},
        "relatedLocations": {"type": "array", "items": LOCATION},
    },
}
SCHEMA = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {"results": {"type": "array", "items": RESULT}},
            },
        },
    },
}

EARLIER = EarlierAccess(3, "ds_write_b32 v1, v2", 0)
FAULTS = (
    Fault("race", "4 bytes of LDS at 16", 7, "ds_read_b32 v3, v1", wave=1, earlier=EARLIER),
    Fault("budget", "it does not end"),
)


def test_results_name_the_kind_the_line_and_what_came_before() -> None:
    told = json.loads(sarif_json(Located("sums", "001-sums.s", fault) for fault in FAULTS))
    jsonschema.validate(told, SCHEMA)
    (run,) = told["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["budget", "race"]
    race, budget = run["results"]
    place = race["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "001-sums.s"
    assert place["region"] == {"startLine": 7, "snippet": {"text": "ds_read_b32 v3, v1"}}
    (before,) = race["relatedLocations"]
    assert before["physicalLocation"]["region"]["startLine"] == 3
    assert before["message"]["text"] == "what wave 0 did before"
    assert race["message"]["text"] == "sums: 4 bytes of LDS at 16"
    assert "region" not in budget["locations"][0]["physicalLocation"]


def test_the_source_goes_before_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = f"{tmp_path}/kernels/sums.py:12"
    fault = Fault("race", "4 bytes", 7, "ds_read_b32 v3, v1", earlier=EARLIER, source=source)
    told = json.loads(sarif_json(Located("sums", "k", fault, is_text) for is_text in (True, False)))
    jsonschema.validate(told, SCHEMA)
    for is_text, result in zip((True, False), told["runs"][0]["results"], strict=True):
        place = result["locations"][0]["physicalLocation"]
        assert place == {
            "artifactLocation": {"uri": "kernels/sums.py", "uriBaseId": "SRCROOT"},
            "region": {"startLine": 12},
        }  # fmt: skip
        related = [each["physicalLocation"].get("region") for each in result["relatedLocations"]]
        lines = [region and region["startLine"] for region in related]
        assert lines == ([7, 3] if is_text else [None])


def test_all_files_are_told_from_the_root_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here/.git").mkdir(parents=True)
    (tmp_path / "here/part").mkdir()
    fault = Fault("race", "4 bytes", 7, "ds_read_b32 v3, v1", source=f"{tmp_path}/other/k.py:3")
    for folder, files in (
        ("here/part", ("pages/1 of 2.s", f"{tmp_path}/here/part/pages/1 of 2.s")),
        ("here", ("part/pages/1 of 2.s",)),
    ):
        monkeypatch.chdir(tmp_path / folder)
        told = json.loads(sarif_json(Located("k", file, fault) for file in files))
        (run,) = told["runs"]
        assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": f"{tmp_path.as_uri()}/here/"}}
        for result in run["results"]:
            (place,), (related,) = result["locations"], result["relatedLocations"]
            uri = {"uri": f"{tmp_path.as_uri()}/other/k.py"}
            assert place["physicalLocation"]["artifactLocation"] == uri
            own = {"uri": "part/pages/1%20of%202.s", "uriBaseId": "SRCROOT"}
            assert related["physicalLocation"]["artifactLocation"] == own


def test_without_faults_there_are_no_results() -> None:
    told = json.loads(sarif_json([]))
    jsonschema.validate(told, SCHEMA)
    assert told["runs"][0]["results"] == []
