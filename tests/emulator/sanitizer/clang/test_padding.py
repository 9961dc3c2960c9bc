"""Padding may be copied, and not be used."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mfmadsl.emulator.sanitizer import sanitize

SOURCE = Path(__file__).with_name("padding.c")


@cache
def assembly(kind: str, level: str) -> str:
    command = ["clang", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-nogpulib", level, "-S"]
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *command, f"-D{kind}", str(SOURCE), "-o", "-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def kinds_of_faults(kind: str, level: str) -> set[str]:
    args = [np.zeros(1024, np.int32), np.int32(1)]
    found = sanitize(assembly(kind, level), args, (1,), (64,), unwritten=[0], keep_going=True)
    return {fault.kind for fault in found.faults}


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
@pytest.mark.parametrize("kind", ["ONE", "CHOSEN", "WIDE", "AGAIN"])
def test_padding_is_copied(kind: str, level: str) -> None:
    assert kinds_of_faults(kind, level) == set()


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("kind", ["USED", "NEVER"])
def test_what_nobody_wrote_is_used(kind: str, level: str) -> None:
    assert kinds_of_faults(kind, level) == {"uninitialized"}
