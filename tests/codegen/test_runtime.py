"""The runtime that generated modules share: found wherever they lie, and nothing but TVM in it."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mfmadsl.codegen import RUNTIME, module_text, runtime_texts
from mfmadsl.language import library
from mfmadsl.model import Intrinsic
from tests.cli.command import run, spec
from tests.language.entries import HALF

NAME = "mfma_f32_16x16x16_f16"
OTHER = HALF.replace(NAME, "mfma_f32_16x16x16_f16_twin").replace(
    "alias   v_mfma_f32_16x16x16f16", ""
)
EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)


def imported(text: str) -> set[str]:
    """The first words of all that a module imports; of what lies beside it, with a dot."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {"." * node.level + name.partition(".")[0] for name in names}
    return found - sys.stdlib_module_names


@EVERY
def test_a_module_imports_tvm_and_the_runtime_beside_it(intrinsic: Intrinsic) -> None:
    assert imported(module_text(intrinsic)) == {"tvm", f".{RUNTIME}"}


def test_the_runtime_imports_tvm_and_nothing_else() -> None:
    beside = {f".{Path(name).stem}" for name in runtime_texts()}
    for text in runtime_texts().values():
        assert imported(text) <= {"tvm", *beside}


def test_the_runtime_is_a_package_of_one_concept_a_file() -> None:
    assert "__init__.py" in runtime_texts()
    assert max(text.count("\n") for text in runtime_texts().values()) < 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `mfmadsl compile` writes of one instruction."""
    there = tmp_path_factory.mktemp("compiled")
    assert run("compile", spec(there), "-o", there / "generated").exit_code == 0
    return there / "generated"


LOADED = (
    "print(tile.COMPUTE, tile.M); assert tile.register() == list(tile.NAMES.values());"
    "assert not any(name.startswith('mfmadsl') for name in set(sys.modules) - known)"
)
TVM = "import sys, tvm; known = set(sys.modules)"
"""TVM looks for devices by its entry points, of which mfmadsl has one."""


def printed(program: str, place: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"{TVM}; {program}"],
        cwd=place, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_module_of_the_package_is_imported(folder: Path) -> None:
    program = f"from generated import {NAME} as tile; {LOADED}"
    assert printed(program, folder.parent) == f"{NAME}_compute 16\n"


def test_a_module_of_a_folder_that_is_searched_is_imported(folder: Path) -> None:
    assert printed(f"import {NAME} as tile; {LOADED}", folder) == f"{NAME}_compute 16\n"


def test_a_module_is_loaded_by_its_path(folder: Path, tmp_path: Path) -> None:
    program = (
        "from importlib.util import module_from_spec, spec_from_file_location as at;"
        f"spec = at('some.name', {str(folder / NAME)!r} + '.py'); tile = module_from_spec(spec);"
        f"spec.loader.exec_module(tile); {LOADED}"
    )
    assert printed(program, tmp_path) == f"{NAME}_compute 16\n"


@pytest.mark.parametrize("program", [f"import generated.{NAME}", f"import {NAME}"])
def test_a_runtime_that_is_missing_is_told(tmp_path: Path, program: str) -> None:
    assert run("compile", spec(tmp_path), "-o", tmp_path / "generated").exit_code == 0
    runtime = tmp_path / "generated" / RUNTIME
    shutil.rmtree(runtime)
    place = tmp_path if "generated" in program else tmp_path / "generated"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    told = f"ImportError: {runtime} is missing: `mfmadsl compile` writes it"
    assert done.stderr.splitlines()[-1] == told


def test_it_is_the_same_for_all_and_written_once(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.mfma"
    other.write_text(OTHER)
    out = tmp_path / "out"
    for path in (spec(tmp_path), other):
        assert run("compile", path, "-o", out).exit_code == 0
    written = [f"{NAME}.py", f"{NAME}_twin.py", RUNTIME, "__init__.py"]
    assert sorted(path.name for path in out.iterdir()) == sorted(written)
    for there in (out, folder):
        files = {path.name: path.read_text() for path in (there / RUNTIME).glob("*.py")}
        assert files == runtime_texts()


def test_one_of_an_earlier_release_is_replaced(tmp_path: Path) -> None:
    for name, text in runtime_texts().items():
        (tmp_path / RUNTIME).mkdir(exist_ok=True)
        (tmp_path / RUNTIME / name).write_text(f"{text}outdated = 1")
    assert run("compile", spec(tmp_path), "-o", tmp_path).exit_code == 0
    for name, text in runtime_texts().items():
        assert (tmp_path / RUNTIME / name).read_text() == text


@pytest.mark.parametrize("content", ["precious = 1\n", ""])
@pytest.mark.parametrize("name", runtime_texts())
def test_a_file_of_its_names_that_is_not_ours_is_refused(
    tmp_path: Path, name: str, content: str
) -> None:
    file = tmp_path / "out" / RUNTIME / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    result = run("compile", spec(tmp_path), "-o", tmp_path / "out")
    assert result.exit_code == 1
    told = "exists and was not written by mfmadsl; move it or choose another folder"
    assert result.output == f"error: {file}: {told}\n"
    assert sorted((tmp_path / "out").rglob("*")) == [file.parent, file]
    assert file.read_text() == content


def test_a_file_in_place_of_its_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / RUNTIME).write_text("precious = 1\n")
    result = run("compile", spec(tmp_path), "-o", tmp_path / "out")
    assert result.exit_code == 1
    told = f"error: {tmp_path / 'out' / RUNTIME}: cannot be made a folder: File exists\n"
    assert result.output == told
    assert [path.name for path in (tmp_path / "out").iterdir()] == [RUNTIME]


def test_the_users_files_in_its_folder_stay(tmp_path: Path) -> None:
    (tmp_path / RUNTIME).mkdir()
    (tmp_path / RUNTIME / "mine.py").write_text("precious = 1\n")
    assert run("compile", spec(tmp_path), "-o", tmp_path).exit_code == 0
    assert (tmp_path / RUNTIME / "mine.py").read_text() == "precious = 1\n"


def test_two_folders_have_each_their_own_runtime(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.mfma"
    other.write_text(OTHER)
    assert run("compile", other, "-o", tmp_path).exit_code == 0
    program = (
        f"import sys; sys.path.append({str(tmp_path)!r});"
        f"import {NAME} as tile, {NAME}_twin as twin;"
        f"{LOADED}; assert twin.register() == list(twin.NAMES.values());"
        "from pathlib import Path; print(*(Path(x.mfma.__file__).parent for x in (tile, twin)))"
    )
    told = f"{NAME}_compute 16\n{folder / RUNTIME} {tmp_path / RUNTIME}\n"
    assert printed(program, folder) == told


def test_a_type_checker_of_the_user_has_nothing_to_say(folder: Path) -> None:
    user = folder.parent / "user.py"
    user.write_text(
        f"from generated import {NAME} as tile\n\nprint(tile.FILL, tile.a_slot(1, 2))\n"
    )
    call = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--config-file=", str(user)]
    done = subprocess.run(call, cwd=folder.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
