"""The runtime is compiled once, by whatever compiler there is, and kept for its user alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mfmadsl.environment.compilers import find_compilers
from mfmadsl.runtime import RuntimeBuildError
from mfmadsl.runtime import compile as runtime
from tests.runtime.conftest import Run

pytestmark = pytest.mark.xdist_group("runtime")


def compiler(folder: Path, name: str, does: str) -> Path:
    """A program in the place of a compiler; `$2` is the file that it shall write."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n{does}\n')
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MFMADSL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds all compilers there are."""
    folder = tmp_path / "compilers"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: found(folder / name))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return folder


def found(path: Path) -> str | None:
    return str(path) if path.exists() else None


def test_what_is_compiled_is_kept_for_its_user_alone(only: Path, tmp_path: Path) -> None:
    compiler(only, "g++", 'echo compiled > "$2"')
    assert runtime.kept_library() is None
    assert runtime.compiled_library(tmp_path).read_text() == "compiled\n"
    kept = runtime.kept_library()
    assert kept is not None
    assert kept.read_text() == "compiled\n"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_what_others_can_write_is_not_taken(only: Path, tmp_path: Path) -> None:
    compiler(only, "g++", 'echo compiled > "$2"')
    runtime.compiled_library(tmp_path)
    kept = runtime.kept_library()
    assert kept is not None
    kept.chmod(0o622)
    assert runtime.kept_library() is None


def test_another_compiler_compiles_anew(only: Path, tmp_path: Path) -> None:
    path = compiler(only, "g++", 'echo old > "$2"')
    runtime.compiled_library(tmp_path)
    before = runtime.kept_library()
    path.write_text(path.read_text().replace("old", "newer"))
    runtime.compiled_library(tmp_path)
    after = runtime.kept_library()
    assert after is not None
    assert after != before
    assert after.read_text() == "newer\n"


def test_what_is_kept_outlives_its_compiler(only: Path, tmp_path: Path) -> None:
    compiler(only, "g++", 'echo compiled > "$2"')
    runtime.compiled_library(tmp_path)
    kept = runtime.kept_library()
    (only / "g++").unlink()
    assert find_compilers() == []
    assert runtime.kept_library() == kept


def test_a_cache_that_cannot_be_written_costs_time_only(
    only: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MFMADSL_CACHE", "/proc/nowhere")
    compiler(only, "g++", 'echo compiled > "$2"')
    assert runtime.compiled_library(tmp_path).read_text() == "compiled\n"
    assert runtime.kept_library() is None


def test_the_next_compiler_is_tried(only: Path, tmp_path: Path) -> None:
    compiler(only, "g++", "exit 1")
    compiler(only, "clang++", 'echo clang > "$2"')
    assert runtime.compiled_library(tmp_path).read_text() == "clang\n"


def test_without_a_compiler_it_says_what_to_install(only: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeBuildError) as error:
        runtime.compiled_library(tmp_path)
    assert str(error.value) == (
        "TVM's runtime for GPUs of AMD has to be compiled: install a C++ compiler "
        "(apt install g++, or pip install ziglang), or name one in CXX"
    )


def test_a_compiler_that_refuses_is_quoted(
    only: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = compiler(only, "old", "echo In file of one: >&2\necho x.h:3: error: too old >&2\nexit 1")
    monkeypatch.setenv("CXX", f"{old} -m64")
    with pytest.raises(RuntimeBuildError, match=r"old -m64: x\.h:3: error: too old: install"):
        runtime.compiled_library(tmp_path)
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    with pytest.raises(RuntimeBuildError, match="none: No such file or directory: install"):
        runtime.compiled_library(tmp_path)


@pytest.mark.thorough
def test_a_compiler_with_another_library_of_c_plus_plus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it throws TVM would not catch."""
    monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang c++")
    with pytest.raises(RuntimeBuildError, match=r"this compiler has libc\+\+"):
        runtime.compiled_library(tmp_path)


def prebuilt(folder: Path, library: Path) -> Path:
    """A compiler that knows one program, and takes its time."""
    does = f'echo compiled >> {folder}/times\nsleep 0.15\ncp {library} "$2"'
    return compiler(folder, "g++", does)


@pytest.fixture(scope="session")
def library(run: Run, cache: Path) -> Path:
    """The runtime, compiled by the first compiler of this machine."""
    program = "from mfmadsl.runtime.load import load; load()"
    assert run("-c", program).returncode == 0
    return next(cache.glob("rocm-*.so"))


EXISTS = "import tvm, mfmadsl.runtime; mfmadsl.runtime.autoload(); print(tvm.rocm(0).exist)"


@pytest.mark.thorough
def test_processes_that_compile_at_once_do_not_disturb_each_other(
    run: Run, library: Path, tmp_path: Path, hip: Path
) -> None:
    own = {
        "CXX": str(prebuilt(tmp_path / "compilers", library)),
        "MFMADSL_CACHE": str(tmp_path / "cache"),
        "LD_LIBRARY_PATH": str(hip),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", EXISTS]
    processes = [
        subprocess.Popen(command, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate()[0] for process in processes] == ["True\n"] * 3
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.read_bytes() == library.read_bytes()


def test_a_kept_file_that_is_broken_is_made_anew(run: Run, library: Path, tmp_path: Path) -> None:
    own = {
        "CXX": str(prebuilt(tmp_path / "compilers", library)),
        "MFMADSL_CACHE": str(tmp_path / "cache"),
    }
    assert run("-c", EXISTS, **own).stdout == "True\n"
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_text("broken")
    done = run("-c", EXISTS, **own)
    assert done.stdout == "True\n", done.stderr
    assert kept.read_bytes() == library.read_bytes()
    assert (tmp_path / "compilers/times").read_text().count("compiled") == 4  # and linked
