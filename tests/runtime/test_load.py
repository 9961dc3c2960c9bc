"""`tvm.rocm(0)` after `import tvm`, and TVM left alone where nobody wants a GPU."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import tvm

from mfmadsl.runtime.load import _asks_the_device
from tests.runtime.conftest import Run
from tests.test_readme import ROOT

pytestmark = pytest.mark.xdist_group("runtime")

NO_COMPILER = {"CXX": "/nowhere/c++"}
BY_HAND = {"TVM_DEVICE_BACKEND_AUTOLOAD": "0"}
"""TVM then finds no backends by itself."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PYTHONPATH on which the package has its entry points, as pip would install them."""
    stated = re.search(
        r"^\[project.entry-points.\"tvm.backends\"\]\n(\w+) = \"(.*?)\"",
        (ROOT / "pyproject.toml").read_text(),
        re.MULTILINE,
    )
    assert stated is not None
    folder = tmp_path_factory.mktemp("installed")
    described = folder / "mfmadsl_under_test-0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Name: mfmadsl-under-test\nVersion: 0\n")
    (described / "entry_points.txt").write_text(f"[tvm.backends]\n{stated[1]} = {stated[2]}\n")
    return f"{ROOT}:{folder}"


def test_import_tvm_is_enough(run: Run, installed: str) -> None:
    done = run("-c", "import tvm; print(tvm.rocm(0).exist)", PYTHONPATH=installed)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def test_import_tvm_compiles_and_loads_nothing(run: Run, installed: str, tmp_path: Path) -> None:
    program = "import tvm; print(open('/proc/self/maps').read())"
    own = {"MFMADSL_CACHE": str(tmp_path), "CXX": "touch compiled", "PYTHONPATH": installed}
    done = run("-W", "error", "-c", program, **own)
    assert done.returncode == 0, done.stderr
    assert "libtvm_runtime.so" in done.stdout
    assert not re.search("rocm-|libamdhip64", done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_without_hip_there_is_no_device_and_using_one_says_what_to_do(run: Run) -> None:
    program = """
import tvm, mfmadsl.runtime
mfmadsl.runtime.autoload()
print(tvm.rocm(0).exist)
try:
    tvm.rocm(0).sync()
except mfmadsl.HipError as error:
    print(error)
"""
    exists, error = run("-c", program, with_hip=False, LD_LIBRARY_PATH="").stdout.splitlines()
    assert exists == "False"
    assert error == (
        "no GPU of AMD can be used: libamdhip64.so was not found. Install ROCm 6 or newer, and set "
        "ROCM_PATH if it does not lie in /opt/rocm; or run the program on an emulated GPU: "
        "mfmadsl device -- COMMAND"
    )


def test_hip_that_cannot_be_loaded_is_quoted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "libamdhip64.so").write_text("no library")
    program = """
import tvm, mfmadsl.runtime
mfmadsl.runtime.autoload()
try:
    tvm.rocm(0).sync()
except mfmadsl.HipError as error:
    print(error)
"""
    done = run("-c", program, with_hip=False, LD_LIBRARY_PATH=str(tmp_path))
    assert done.stdout.startswith(
        f"no GPU of AMD can be used: libamdhip64.so was not loaded ({tmp_path}/libamdhip64.so: "
    ), done.stderr


def test_without_a_compiler_the_device_says_what_to_install(run: Run, tmp_path: Path) -> None:
    program = """
import tvm, mfmadsl.runtime
mfmadsl.runtime.autoload()
try:
    tvm.rocm(0).exist
except mfmadsl.RuntimeBuildError as error:
    print(error)
"""
    done = run("-c", program, MFMADSL_CACHE=str(tmp_path), **NO_COMPILER)
    assert done.stdout == (
        "TVM's runtime for GPUs of AMD has to be compiled: /nowhere/c++: No such file or directory:"
        " install a C++ compiler (apt install g++, or pip install ziglang), or name one in CXX\n"
    ), done.stderr


@pytest.mark.thorough
def test_tvm_is_left_alone_if_there_is_neither_hip_nor_a_way_to_compile(
    run: Run, tmp_path: Path
) -> None:
    program = """
import tvm, tvm_ffi
from mfmadsl.runtime import load
load.find_compilers = list
load.autoload()
print(tvm_ffi.get_global_func("device_api.rocm", allow_missing=True) is not None)
"""
    own = {"MFMADSL_CACHE": str(tmp_path), **BY_HAND}
    assert run("-c", program, with_hip=False, LD_LIBRARY_PATH="", **own).stdout == "False\n"
    assert run("-c", program, **own).stdout == "True\n"


def test_tvm_is_left_alone_if_it_is_another_or_has_rocm(run: Run) -> None:
    program = """
import tvm, tvm_ffi
from mfmadsl.runtime import autoload
names = tvm_ffi.registry.list_global_func_names
tvm.__version__ = "0.28.0"
before = set(names())
autoload()
print(set(names()) == before)
tvm.__version__ = "0.27.0"
tvm_ffi.register_global_func("device_api.rocm", lambda: "TVM's own")
autoload()
print(tvm_ffi.get_global_func("device_api.rocm")())
"""
    assert run("-c", program, **BY_HAND).stdout.splitlines() == ["True", "TVM's own"]


def test_a_kernel_is_built_without_asking_for_a_device(run: Run, tmp_path: Path) -> None:
    """Nothing is compiled for those who build kernels on a machine without HIP."""
    program = """
import mfmadsl, mfmadsl.runtime
mfmadsl.runtime.autoload()
workload = mfmadsl.matmul(64, 64, 32, "float16", "float32")
print(len(mfmadsl.build(mfmadsl.gemm_schedule(workload), arch="gfx942").assembly) > 1000)
"""
    own = {"MFMADSL_CACHE": str(tmp_path), **NO_COMPILER}
    done = run("-c", program, with_hip=False, LD_LIBRARY_PATH="", **own)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(("exists", "expected"), [(True, "gfx90a"), (False, "gfx900")])
def test_a_target_without_a_chip_has_that_of_the_device_if_there_is_one(
    exists: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = SimpleNamespace(exist=exists, compute_version="gfx90a" if exists else None)
    monkeypatch.setattr(tvm, "rocm", lambda _: device)
    assert _asks_the_device(lambda: "gfx900")() == expected
