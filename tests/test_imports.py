"""Who imports whom: the contracts of pyproject.toml hold, and notice imports that break them."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent

# Module, what it must not import, and the contract that says so.
PLANTED = [
    ("codegen.filters", "mfmadsl.hip.run", "house"),
    ("passes.grid", "mfmadsl.device.server", "house"),
    ("passes.tir.linear", "mfmadsl.backend.isolate", "house"),
    ("schedule.workload.dense", "mfmadsl.cli.show", "house"),
    ("model.layout", "mfmadsl.language.read", "house"),
    ("environment.hip", "mfmadsl.doctor.finding", "house"),
    ("report.layout", "mfmadsl.cli.write", "house"),
    ("hip.timing", "mfmadsl.tune.job", "house"),
    ("export.triton", "mfmadsl.language.library", "exports"),
    ("emulator.run", "mfmadsl.language.library", "witness"),
    ("emulator.machine.wave", "mfmadsl.emulator.sanitizer.race", "emulator"),
    ("passes.types.bits", "mfmadsl.passes.cpu.stack", "passes"),
    ("passes.main_loop.lds.places", "mfmadsl.passes.main_loop.moves.put", "main-loop"),
    ("schedule.cpu.gemm", "mfmadsl.schedule.matrix_core.mfma", "schedule"),
    ("backend.cpu.build", "mfmadsl.backend.gpu.lower", "backend"),
    ("cli.explore", "tvm", "tvm"),
    ("editor.hover", "pygls.server", "editors"),
    ("language.check", "mfmadsl.language.parser", "circles"),
    ("language.parser", "mfmadsl.language.check", "circles"),
]


def lint(folder: Path, *arguments: str) -> tuple[int, str]:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-logo", "--no-cache", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_hold() -> None:
    code, said = lint(ROOT)
    assert code == 0, said


@pytest.mark.parametrize("within_function", [False, True], ids=["at the top", "within a function"])
def test_planted_imports_are_noticed(tmp_path: Path, within_function: bool) -> None:
    shutil.copytree(ROOT / "mfmadsl", tmp_path / "mfmadsl")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module, other, _ in PLANTED:
        path = tmp_path / "mfmadsl" / f"{module.replace('.', '/')}.py"
        line = f"import {other}\n"
        text = path.read_text()
        path.write_text(f"{text}\n\ndef planted():\n    {line}" if within_function else text + line)
    for contract in sorted({contract for *_, contract in PLANTED}):
        code, said = lint(tmp_path, "--contract", contract)
        assert code == 1, said
        told = re.sub(r"\s+", " ", said)
        for module, other, broken in PLANTED:
            if contract == broken != "circles":
                seen = other if other.startswith("mfmadsl") else other.split(".")[0]
                assert f"mfmadsl.{module} -> {seen}" in told, (module, said)


def test_nothing_imports_the_package_by_its_face() -> None:
    graph = grimp.build_graph("mfmadsl", cache_dir=None)
    assert graph.find_modules_that_directly_import("mfmadsl") == set()


def test_packages_are_there_without_an_import_of_their_own() -> None:
    told = (
        "import sys, mfmadsl\n"
        "assert mfmadsl.language.reads() and mfmadsl.model.cpu('sapphirerapids').name\n"
        "assert 'tvm' not in sys.modules\n"
        "assert mfmadsl.export.FORMATS and mfmadsl.schedule.Tiling and mfmadsl.emulator.emulate\n"
    )
    subprocess.run([sys.executable, "-c", told], check=True)


OPTIONAL = {"lsprotocol", "pygls", "pytest", "triton"}
"""What is imported where it is there, or by a command whose extra brings it."""


def test_what_is_imported_is_declared() -> None:
    """So that an environment with nothing but the wheel and its dependencies has it."""
    graph = grimp.build_graph("mfmadsl", include_external_packages=True)
    foreign = {module for module in graph.modules if not module.startswith("mfmadsl")}
    text = (ROOT / "pyproject.toml").read_text().partition("\ndependencies = [")[2]
    declared = set(
        map(canonical, re.findall(r'^  "([\w-]+)', text.partition("\n]")[0], re.MULTILINE))
    )
    brought = importlib.metadata.packages_distributions()
    assert {
        module
        for module in foreign - {*sys.stdlib_module_names, *OPTIONAL}
        if not declared & set(map(canonical, brought.get(module, [])))
    } == set()


def canonical(name: str) -> str:
    return name.strip().replace("_", "-").lower()
