"""What TVM exported runs on the emulated GPU, in a new process, and its numbers are right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.conftest import Run

pytestmark = pytest.mark.xdist_group("runtime")


@pytest.fixture(scope="module")
def folder(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    done = run("-m", "tests.runtime.exported", str(folder), with_hip=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def ran(run: Run, folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs all kernels on the emulated GPU, whose disassembler the user's cache keeps."""

    def ran(*options: str) -> subprocess.CompletedProcess[str]:
        program = (sys.executable, "-m", "tests.runtime.numbers", str(folder))
        device = ("-m", "mfmadsl", "device", *options, "--")
        cache = os.environ.get("MFMADSL_CACHE", "")
        return run(*device, *program, with_hip=False, MFMADSL_CACHE=cache)

    return ran


@pytest.mark.thorough
def test_kernels_of_an_exported_library(ran: Run) -> None:
    done = ran("--sanitize")
    assert (done.stdout, done.returncode) == ("gfx942 right\n", 0), done.stderr


def test_a_kernel_for_another_chip_is_refused(ran: Run) -> None:
    done = ran("--arch", "gfx90a")
    assert done.returncode == 1
    assert "made for gfx942, and rocm:0 is a gfx90a; build it for that" in done.stderr
