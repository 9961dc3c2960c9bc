"""What docs/gpu.md shows is what happens, on the emulated GPU."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import blocks, pattern, sessions

PAGE = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text()


def on_device(*command: str) -> subprocess.CompletedProcess[str]:
    device = ["device", "--profile", os.devnull, "--"]
    line = [sys.executable, "-m", "mfmadsl", *device, sys.executable, *command]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize(("command", "shown"), sessions(PAGE))
def test_the_commands_print_what_the_page_shows(command: str, shown: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "mfmadsl"
    done = on_device("-m", program, *arguments)
    assert re.fullmatch(pattern(shown), done.stdout, re.DOTALL), done.stdout + done.stderr


def test_the_programs_of_the_page_run() -> None:
    (program,) = blocks(PAGE, "python gpu")
    done = on_device("-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("MI300X (modelled) ")
