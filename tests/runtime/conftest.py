"""Programs with the stand-in for HIP, and with a runtime that is compiled once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_readme import ROOT

HERE = Path(__file__).parent

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that keeps the compiled runtime, for all tests that do not compile it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def hip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in as libamdhip64.so."""
    folder = tmp_path_factory.mktemp("hip")
    compiler = [shutil.which("cc") or sys.executable]
    if compiler == [sys.executable]:
        compiler += ["-m", "ziglang", "cc"]
    library = str(folder / "libamdhip64.so")
    command = [*compiler, "-shared", "-fPIC", str(HERE / "stand_in.c"), "-o", library]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="session")
def run(cache: Path, hip: Path) -> Run:
    """Runs Python with the stand-in, or without HIP; whatever is said of the environment holds."""

    def run(
        *arguments: str, with_hip: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        given = {name: value for name, value in os.environ.items() if name != "ROCM_PATH"}
        own = {"PYTHONPATH": str(ROOT), "MFMADSL_CACHE": str(cache)}
        if with_hip:
            own["LD_LIBRARY_PATH"] = str(hip)
        return subprocess.run(
            [sys.executable, *arguments],
            env={**given, **own, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run
