"""What is there beside Python, and what stands in its place."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from mfmadsl.doctor.finding import Finding
from mfmadsl.doctor.machine import cache
from mfmadsl.doctor.programs import programs
from mfmadsl.environment.linker import find_linker

_NOBODY = 65534  # of Linux


@pytest.fixture(autouse=True)
def nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CC", "CXX", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    find_linker.cache_clear()


def found() -> dict[str, Finding]:
    every = {each.name: each for each in programs()}
    find_linker.cache_clear()
    assert not any(each.needed for each in every.values())
    assert all((each.state == "ok") == (not each.remedy) for each in every.values())
    return every


def program(folder: Path, name: str, does: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return path


def test_without_any_program_only_what_python_brings_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    told = found()
    for name in ("linker", "C compiler", "C++ compiler"):
        assert "-m ziglang" in told[name].found, name
    assert (told["llvm-mca-22"].found, told["llvm-mca-22"].state) == ("not found", "missing")


def test_without_ziglang_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    told = found()
    for name in ("linker", "C compiler", "C++ compiler"):
        assert (told[name].state, told[name].found) == ("missing", "not found"), name
        assert "pip install 'mfmadsl[linker]'" in told[name].remedy


def test_a_program_tells_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "ld.lld", "echo LLD 22.1; echo more")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert found()["linker"] == Finding("linker", "ok", False, f"{path}: LLD 22.1")


def test_a_program_that_refuses_is_wrong_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path, "ld.lld", "echo one >&2; echo broken library >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    told = found()["linker"]
    assert (told.state, told.found) == ("wrong", f"{path}: broken library")


@pytest.mark.parametrize("chosen", ["/nowhere/c++", "'unclosed"])
def test_a_compiler_that_is_not_there_is_told_by_its_name(
    chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", chosen)
    told = found()["C++ compiler"]
    assert told.state == "wrong"
    assert told.found.endswith(": No such file or directory")


def test_a_hip_that_is_no_library_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libamdhip64.so").write_text("")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert found()["HIP"].state == "missing"


def test_a_hip_that_crashes_ends_a_child_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    source = tmp_path / "hip.c"
    source.write_text("#include <stdlib.h>\nint hipGetDeviceCount(int *n) { abort(); }\n")
    library = tmp_path / "lib/libamdhip64.so"
    assert os.system(f"cc -shared -fPIC {source} -o {library}") == 0
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    told = found()["HIP"]
    assert (told.state, told.found) == ("wrong", f"{library}: ends the process by SIGABRT")


@pytest.mark.parametrize(
    ("does", "state", "says"),
    [
        ("*n = 2; return 0;", "ok", "2 GPUs"),
        ("*n = 0; return 0;", "wrong", "finds no GPU"),
        ("return 100;", "wrong", "finds no GPU"),
    ],
)
def test_a_hip_says_how_many_gpus_there_are(
    does: str, state: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    source = tmp_path / "hip.c"
    source.write_text(f"int hipGetDeviceCount(int *n) {{ {does} }}\n")
    library = tmp_path / "lib/libamdhip64.so"
    assert os.system(f"cc -shared -fPIC {source} -o {library}") == 0
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    told = found()["HIP"]
    assert (told.state, told.found) == (state, f"{library}: {says}")


def test_a_cache_that_cannot_be_written_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MFMADSL_CACHE", "/proc/nowhere")
    told = cache()
    assert (told.state, told.needed) == ("wrong", False)
    assert told.found == "/proc/nowhere: No such file or directory"
    assert "MFMADSL_CACHE" in told.remedy


def test_a_cache_that_may_only_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root writes wherever it likes: it becomes nobody to ask."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:  # where nobody may look, unlike tmp_path
        Path(folder).chmod(0o555)
        monkeypatch.setenv("MFMADSL_CACHE", folder)
        try:
            os.seteuid(user or _NOBODY)
            told = cache()
        finally:
            os.seteuid(user)
    assert (told.state, told.found) == ("wrong", f"{folder}: Permission denied")
