"""What the installed package asks for, by its metadata."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mfmadsl.doctor.packages import EXTRAS, MODULES
from mfmadsl.doctor.requirement import requirements

PYPROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text()


def fake(folder: Path, name: str, version: str, *lines: str) -> Path:
    """The metadata of a distribution, as pip writes it."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (info / "METADATA").write_text("\n".join([*head, *lines, ""]))
    return folder


def test_what_is_looked_for_is_what_the_project_depends_on() -> None:
    block = re.search(r"^dependencies = \[\n(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert set(MODULES) == set(re.findall(r'^  "([a-z0-9-]+)>', block[1], re.MULTILINE))


def test_every_extra_of_the_project_is_known() -> None:
    block = PYPROJECT.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    assert set(EXTRAS) == set(re.findall(r"^([a-z]+) = \[", block, re.MULTILINE))


def test_metadata_is_read_in_every_form_that_pip_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(
        tmp_path, "mfmadsl", "9",
        "Requires-Dist: numpy<3,>=2.1",
        "Requires-Dist: plain",
        "Requires-Dist: triton<4,>=3.9; (platform_system == 'Linux') and extra == 'bench'",
        'Requires-Dist: mfmadsl[ladders,tune]; extra == "test"',
    )  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    found = requirements()
    assert found is not None
    assert [(r.name, r.bounds, r.extra, r.extras) for r in found] == [
        ("numpy", "<3,>=2.1", None, ()),
        ("plain", "", None, ()),
        ("triton", "<4,>=3.9", "bench", ()),
        ("mfmadsl", "", "test", ("ladders", "tune")),
    ]


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.1", True), ("2.1.0", True), ("2.0.9", False), ("3", False), ("2.10.post1", True)],
)
def test_a_version_is_compared_by_its_numbers(
    version: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, "numpy", version)
    fake(tmp_path, "mfmadsl", "9", "Requires-Dist: numpy<3,>=2.1")
    monkeypatch.syspath_prepend(str(tmp_path))
    (requirement,) = requirements() or ()
    complaint = "" if fits else f"{version} is installed, <3,>=2.1 is needed"
    assert requirement.complaint() == complaint
