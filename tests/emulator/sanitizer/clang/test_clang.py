"""Kernels of clang, of many kinds: none is accused, and each `s_nop` of theirs is needed.

Clang for AMD GPUs is a part of `ziglang`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.model import ARCHITECTURES
from tests.emulator.sanitizer.wait_states.paths import lacking
from tests.emulator.sanitizer.wait_states.test_llvm import one_less

SOURCE = Path(__file__).with_name("kernels.c")
KINDS = re.findall(r"defined\((\w+)\)", SOURCE.read_text())


@cache
def assembly(kind: str, arch: str) -> str:
    command = ["clang", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-O2", "-S"]
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *command, f"-D{kind}", str(SOURCE), "-o", "-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_has_no_fault(kind: str, arch: str) -> None:
    generator = np.random.default_rng(5)
    a, b = (generator.integers(0, 250, 1 << 14).astype(np.uint32) for _ in range(2))
    args = [a, b, np.int32(64)]
    found = sanitize(assembly(kind, arch), args, (2,), (256,), keep_going=True)
    assert [str(fault) for fault in found.faults] == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_nop_is_needed(kind: str, arch: str) -> None:
    text = assembly(kind, arch)
    assert lacking(text) == {}
    for line, mutant in one_less(text):
        assert min(lacking(mutant), default=0) > line
