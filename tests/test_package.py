"""The wheel works outside of the checkout, in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a program of a fresh environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(folder / "bin" / program), *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)

    return run


pytestmark = pytest.mark.xdist_group("package")


def test_the_wheel_carries_grammar_library_and_templates(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "mfmadsl/grammars/mfma.lark" in names
    assert "mfmadsl/intrinsics/layouts.mfma" in names
    assert "mfmadsl/intrinsics/cdna/f16.mfma" in names
    assert "mfmadsl/codegen/templates/module.py.jinja" in names
    assert "mfmadsl/docs/diagnostics.md" in names
    assert "mfmadsl/runtime/rocm.cc" in names
    assert "mfmadsl/runtime/device.h" in names
    assert "mfmadsl/emulator/code_object/instructions.txt" in names
    assert "mfmadsl/device/hip/module.c" in names
    assert "mfmadsl/device/hip/runtime.h" in names
    assert "mfmadsl/export/constants/iree.json" in names
    assert "mfmadsl/export/constants/ck.json" in names
    assert "mfmadsl/py.typed" in names
    folders = {name.partition("/")[0] for name in names}
    assert sorted(f.partition("-")[0] for f in folders) == ["mfmadsl", "mfmadsl"]


def test_list_and_gemm_run_from_the_wheel(installed: Run) -> None:
    assert "mfma_f32_16x16x16_f16" in installed("mfmadsl", "list").stdout
    arguments = "gemm --intrinsic mfma_f32_32x32x8_f16 --arch gfx942 -m 64 -n 64 -k 32 --trans-b"
    assert "Two elements fall on one place" in installed("mfmadsl", "--explain", "collision").stdout
    assert "agrees with NumPy" in installed("mfmadsl", *arguments.split(), "--emulate").stdout


def test_the_wheel_runs_from_itself_and_not_from_the_checkout(installed: Run) -> None:
    program = "import mfmadsl; print(mfmadsl.__file__); print(len(mfmadsl.library()))"
    where, count = installed("python", "-c", program).stdout.split()
    assert str(ROOT) not in where
    assert int(count) > 3


def test_tvm_finds_its_device_for_gpus_of_amd(installed: Run) -> None:
    program = "import tvm; print(tvm.get_global_func('device_api.rocm', allow_missing=True))"
    assert installed("python", "-W", "error", "-c", program).stdout != "None\n"
