"""`mfmadsl doctor` tells what is broken, whatever that is, and never breaks with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mfmadsl.cli.doctor import doctor
from mfmadsl.doctor import Finding, doctor_text, works
from mfmadsl.report import json_schema
from tests.doctor.test_requirement import fake

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.xdist_group("doctor")


class Told:
    """What the command told in a process of its own, and its exit code."""

    def __init__(self, *arguments: str, **environment: str | None) -> None:
        given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        done = subprocess.run(
            [sys.executable, "-m", "mfmadsl", "doctor", "--format", "json", *arguments],
            env={name: value for name, value in given.items() if value is not None},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        self.code = done.returncode
        self.json: dict[str, Any] = json.loads(done.stdout)
        Draft202012Validator(json_schema()).validate(self.json)

    def __getitem__(self, name: str) -> dict[str, Any]:
        (found,) = [each for each in self.json["findings"] if each["name"] == name]
        return dict(found)

    def state(self, name: str) -> str:
        return str(self[name]["state"])


@cache
def here() -> Told:
    return Told()


def stand_in(folder: Path, module: str, text: str) -> str:
    """A PYTHONPATH on which a module is another."""
    (folder / f"{module}.py").write_text(text)
    return f"{folder}:{ROOT}"


def test_where_all_is_well_all_that_is_needed_is_ok() -> None:
    told = here()
    assert (told.code, told.json["works"]) == (0, True)
    for each in told.json["findings"]:
        assert not each["needed"] or each["state"] == "ok", each
        assert (each["state"] == "ok") == (not each["remedy"]), each
    assert told["library"]["found"].endswith(" instructions")
    assert told.state("linker") == "ok"


def test_a_tvm_that_cannot_be_imported_is_told_by_its_own_words(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "tvm", "raise ImportError('libLLVM.so.22: not found')")
    told = Told(PYTHONPATH=path)
    assert told.code == 1
    assert told.state("apache-tvm") == "wrong"
    assert "ImportError: libLLVM.so.22: not found" in told["apache-tvm"]["found"]
    assert "apache-tvm-ffi>=0.1.14,<0.1.15" in told["apache-tvm"]["remedy"]
    assert (told.state("library"), told.state("GEMM")) == ("ok", "wrong")
    assert (told.state("numpy"), told.state("linker"), told.state("CPU")) == ("ok", "ok", "ok")


def test_a_tvm_that_ends_the_process_ends_only_a_childs(tmp_path: Path) -> None:
    told = Told(PYTHONPATH=stand_in(tmp_path, "tvm", "import os; os.abort()"))
    assert told.code == 1
    assert "fails: ends the process by SIGABRT" in told["apache-tvm"]["found"]
    assert told["GEMM"]["found"] == "ends the process by SIGABRT"
    assert (told.state("click"), told.state("pyyaml")) == ("ok", "ok")


@pytest.mark.thorough
def test_the_pair_of_tvm_that_crashes_is_told_before_it_does(tmp_path: Path) -> None:
    fake(tmp_path, "apache-tvm-ffi", "0.1.15")
    told = Told(PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert told.code == 1
    assert told.state("apache-tvm-ffi") == "wrong"
    assert "0.1.15 is installed" in told["apache-tvm-ffi"]["found"]
    assert told.state("apache-tvm") == "ok"
    assert "mfmadsl works with apache-tvm-ffi 0.1.14.x" in told["GEMM"]["found"]


def test_packages_that_commands_import_may_be_broken(tmp_path: Path) -> None:
    for module in ("lark", "numpy", "llvmlite"):
        path = stand_in(tmp_path, module, f"raise ImportError('half of {module}')")
    told = Told(PYTHONPATH=path)
    assert told.code == 1
    for module in ("lark", "numpy", "llvmlite"):
        assert f"half of {module}" in told[module]["found"]
    done = subprocess.run(
        [sys.executable, "-m", "mfmadsl", "list"], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        "error: half of lark: `mfmadsl doctor` tells what is missing, and what to do\n"
    )


@pytest.mark.thorough
def test_a_user_without_a_home_is_told_so(tmp_path: Path) -> None:
    # Path.home() asks HOME, and then the system's list of users, which a container may lack.
    text = """
import pathlib
def home(cls): raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = classmethod(home)
"""
    none = {"HOME": None, "XDG_CACHE_HOME": None, "MFMADSL_CACHE": None}
    told = Told(PYTHONPATH=stand_in(tmp_path, "sitecustomize", text), **none)
    assert (told.code, told.state("home"), told.state("cache")) == (1, "wrong", "wrong")
    assert told.state("library") == "ok"
    assert "set HOME" in told["home"]["remedy"]


def test_a_package_without_its_folders_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mfmadsl.doctor import machine

    monkeypatch.setattr(machine, "resource_folder", lambda name: tmp_path / name)
    found = machine.package()
    assert (found.state, found.needed) == ("wrong", True)
    assert "without grammars/mfma.lark, intrinsics/layouts.mfma" in found.found


GOOD = Finding("Python", "ok", True, "3.12")
BARE = Finding("linker", "missing", False, "not found", "install one")


def test_the_text_says_what_is_wrong_and_what_to_do() -> None:
    assert doctor_text([GOOD, BARE]) == (
        "Python  ok       3.12\n"
        "linker  missing  not found\n"
        "                 -> install one\n"
        "\n"
        "mfmadsl works; what only some commands need is not all there: linker"
    )
    assert doctor_text([GOOD]).endswith("\nmfmadsl works, and all is there")
    assert doctor_text([GOOD, replace(BARE, needed=True)]).endswith(
        "\nbroken: mfmadsl needs linker"
    )


def test_only_what_is_needed_decides() -> None:
    assert works([GOOD, BARE])
    assert not works([GOOD, replace(BARE, needed=True)])
    assert not works([replace(GOOD, state="wrong")])


def test_a_wrong_call_is_one() -> None:
    with pytest.raises(SystemExit) as end:
        doctor(["--format", "yaml"])
    assert end.value.code == 2


def test_what_is_broken_in_several_lines_is_told_in_one() -> None:
    broken = Finding("apache-tvm", "wrong", True, "OSError: boom\nmore", "mend\nit")
    assert "OSError: boom more" in doctor_text([broken]).splitlines()[0]
