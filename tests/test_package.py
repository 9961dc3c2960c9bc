"""The archive of sources is whole, and the wheel that is made of it works outside of the checkout,
in an environment of its own."""

from __future__ import annotations

import email
import email.message
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

Run = Callable[..., subprocess.CompletedProcess[str]]


FOLDERS = (
    "benchmarks", "docs", "examples", "grammars", "intrinsics", "mfmadsl", "scripts", "tests",
    "typings",
)  # fmt: skip
FILES = (
    ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md", "SECURITY.md",
    "pyproject.toml",
)  # fmt: skip


def contents(*folders: str) -> set[str]:
    """The files of the checkout, without what is made of them."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not {"__pycache__", "_build"} & set(path.parts)
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both archives; the wheel is made of the archive of sources."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return email.message_from_string(archive.read(name).decode())


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


@pytest.mark.thorough
def test_the_archive_of_sources_has_all_that_the_repository_has(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {each.partition("/")[2] for each in archive.getnames()}
    assert contents(*FOLDERS) | set(FILES) <= names
    assert {name.partition("/")[0] for name in names} - {".ci", ".clang-format"} == {
        *FOLDERS, *FILES, "PKG-INFO",
    }  # fmt: skip


def test_the_wheel_carries_the_whole_package_and_what_it_reads(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert contents("mfmadsl") <= names
    assert {f"mfmadsl/{name}" for name in contents("grammars", "intrinsics")} <= names
    others = {name for name in names if name.startswith("mfmadsl/docs/")}
    assert others == {"mfmadsl/docs/diagnostics.md"}  # what --explain shows


def test_the_metadata_says_what_the_package_is(metadata: email.message.Message) -> None:
    assert metadata["Name"] == "mfmadsl"
    assert metadata["Requires-Python"] == ">=3.10"
    assert "MFMA" in metadata["Keywords"].split(",")
    text = str(metadata.get_payload())
    assert text.startswith("# mfmadsl")
    page = (ROOT / "docs/installation.md").read_text().partition("## Extras")[2]
    named = set(re.findall(r"^\| `([a-z]+)` \|", page.partition("\n## ")[0], re.MULTILINE))
    assert named == set(metadata.get_all("Provides-Extra", []))


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


@pytest.mark.thorough
def test_list_and_gemm_run_from_the_wheel(installed: Run) -> None:
    assert "mfma_f32_16x16x16_f16" in installed("mfmadsl", "list").stdout
    arguments = "gemm --intrinsic mfma_f32_32x32x8_f16 --arch gfx942 -m 64 -n 64 -k 32 --trans-b"
    assert (
        "Two elements have the same place" in installed("mfmadsl", "--explain", "collision").stdout
    )
    assert "agrees with NumPy" in installed("mfmadsl", *arguments.split(), "--emulate").stdout


@pytest.mark.thorough
def test_the_doctor_finds_all_that_the_main_job_needs(installed: Run) -> None:
    told = installed("mfmadsl", "doctor").stdout.splitlines()
    assert told[-1].startswith("mfmadsl works")
    assert "_mfmadsl_completion" in installed("mfmadsl", "completion", "bash").stdout


def test_the_wheel_runs_from_itself_and_not_from_the_checkout(installed: Run) -> None:
    program = "import mfmadsl; print(mfmadsl.__file__); print(len(mfmadsl.library()))"
    where, count = installed("python", "-c", program).stdout.split()
    assert str(ROOT) not in where
    assert int(count) > 3


def test_tvm_finds_its_device_for_gpus_of_amd(installed: Run) -> None:
    program = "import tvm; print(tvm.get_global_func('device_api.rocm', allow_missing=True))"
    assert installed("python", "-W", "error", "-c", program).stdout != "None\n"
