"""The fixtures for tests of others: pytest in a process of its own, as the documentation has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.device.kernels import code_object

TESTS = """
import ctypes
from pathlib import Path


def launched(name, count, bytes_of_memory):
    hip = ctypes.CDLL("libamdhip64.so")
    module, function, memory = (ctypes.c_void_p() for _ in range(3))
    image = Path(__file__).with_name(name).read_bytes()
    assert hip.hipModuleLoadData(ctypes.byref(module), image) == 0
    assert hip.hipModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
    assert hip.hipMalloc(ctypes.byref(memory), bytes_of_memory) == 0
    values = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    assert hip.hipModuleLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, None, values, None) == 0
    content = (ctypes.c_int32 * count)()
    assert hip.hipMemcpy(content, memory, 4 * count, 2) == 0
    return list(content)


def test_right(emulated_gpu):
    assert emulated_gpu.arch == "gfx90a"
    assert launched("numbered", 128, 512) == [*range(128)]


def test_at_fault(emulated_gpu):
    launched("numbered", 127, 508)


def test_right_again(emulated_gpu):
    assert launched("numbered", 128, 512) == [*range(128)]


def test_a_fault_is_expected(emulated_gpu):
    launched("numbered", 127, 508)
    (fault,) = emulated_gpu.faults()
    assert (fault.where, fault.kind) == ("numbered", "out-of-bounds")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["mfmadsl.testing"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nmfmadsl_arch = gfx90a\n")
    (tmp_path / "test_program.py").write_text(TESTS)
    (tmp_path / "numbered").write_bytes(code_object("numbered", "gfx90a"))
    return tmp_path


def ended(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_test_fails_by_the_faults_of_its_kernels(folder: Path) -> None:
    said = ended(folder)
    assert "4 passed, 1 error" in said, said
    assert "ERROR test_program.py::test_at_fault" in said
    assert "numbered: error[out-of-bounds]: line" in said


def test_a_chip_that_there_is_not_ends_the_run_with_its_name(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\nmfmadsl_arch = gfx9000\n")
    said = ended(folder)
    assert "ERROR: mfmadsl_arch: arch: " in said, said
    assert "gfx9000" in said
    assert "Traceback" not in said


def test_triton_runs_on_an_emulated_chip(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["mfmadsl.testing"]\n')
    (tmp_path / "test_kernel.py").write_text(TRITON)
    said = ended(tmp_path)
    assert "1 passed, 1 failed" in said or "1 failed, 1 passed" in said, said
    assert "error" in said
    assert "out-of-bounds" in said or "offset 4000 of" in said


TRITON = """
import numpy as np
import triton
import triton.language as tl
from mfmadsl.triton import tensor


@triton.jit
def doubled(x, y, count, block: tl.constexpr):
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < count
    tl.store(y + place, 2 * tl.load(x + place, inside), inside)


def on(count):
    x, y = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    doubled[(4,)](tensor(x), tensor(y), count, block=256)
    return y


def test_right(emulated_triton):
    assert (on(1000) == 2).all()
    assert emulated_triton.launches


def test_at_fault(emulated_triton):
    on(1001)
"""
