"""What a program's pages say of its calls; its kernels are looked at where programs run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mfmadsl.emulator.error import Fault
from mfmadsl.report.program_pages import program_pages


def test_faults_of_calls_are_in_the_index_and_among_the_annotations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    faults = [Fault("race", "a fill on stream 1 writes <this>")]
    files = program_pages([], faults, Path("pages"))
    assert "Calls of HIP" in files["index.html"]
    assert "a fill on stream 1 writes &lt;this&gt;" in files["index.html"]
    (result,) = json.loads(files["faults.sarif"])["runs"][0]["results"]
    assert result["message"]["text"] == "HIP: a fill on stream 1 writes <this>"
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "pages/index.html", "uriBaseId": "SRCROOT"}}
    assert "Calls of HIP" not in program_pages([])["index.html"]
