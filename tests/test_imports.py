"""Who imports whom: no module imports itself by way of others, and the emulator's folders form a
line. Imports for type checkers count like others; those within functions are of what only some
callers need, and count for what a package may know at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from mfmadsl.codegen import RUNTIME

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "mfmadsl").rglob("*.py"))
LINE = [
    "error", "text", "code_object", "machine", "instructions", "request", "run", "sanitizer",
    "profiler",
]  # fmt: skip
"""Parts of the emulator; each imports those before it, and of the last two neither the other."""

UNKNOWN_TO_THE_EMULATOR = ("backend", "codegen", "language", "passes", "schedule")


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def statements(tree: ast.AST, within_functions: bool) -> Iterator[ast.stmt]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif within_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from statements(node, within_functions)


def imported(module: str, within_functions: bool = False) -> set[str]:
    """What a module imports; `from package import name` is of the module of that name, if any."""
    found = set()
    for node in statements(ast.parse(MODULES[module].read_text()), within_functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            source = f"{'.' * node.level}{node.module}"
            if source.startswith("."):
                # Only the runtime, which lies in any package, knows its own by a relative name.
                assert MODULES[module].parent.name == RUNTIME, f"{module} imports {source}"
                source = f"mfmadsl.generated.{RUNTIME}{source}"
            for alias in node.names:
                name = f"{source}.{alias.name}"
                found.add(name if name in MODULES else source)
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: imported(module) & set(MODULES) for module in MODULES}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def part_of(module: str) -> str | None:
    """The part of the emulator that a module belongs to."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["mfmadsl", "emulator"] and len(parts) > 2 else None


def test_the_parts_of_the_emulator_form_a_line() -> None:
    seen = set()
    for module in MODULES:
        part = part_of(module)
        if part is None:
            continue
        seen.add(part)
        for other in filter(None, map(part_of, imported(module, within_functions=True))):
            assert LINE.index(other) <= LINE.index(part), f"{module} imports of {other}"
            assert {other, part} != {"sanitizer", "profiler"}, f"{module} imports of {other}"
    assert seen == set(LINE)


def test_tvms_compiler_is_built_of_all_else_and_known_to_nobody() -> None:
    for module in MODULES:
        if not module.startswith("mfmadsl.relax"):
            for other in imported(module, within_functions=True) - {module}:
                known = module == "mfmadsl" and other in ("mfmadsl.relax", "mfmadsl.relax.target")
                assert known or not other.startswith("mfmadsl.relax"), f"{module} imports {other}"


def test_exports_know_the_model_only() -> None:
    known = {"mfmadsl.export", "mfmadsl.model", "mfmadsl.error", "mfmadsl.argument"}
    for module in MODULES:
        if module.startswith("mfmadsl.export"):
            for other in imported(module, within_functions=True) & set(MODULES):
                assert ".".join(other.split(".")[:2]) in known, f"{module} imports {other}"


def test_what_editors_ask_knows_the_language_and_is_known_to_its_command() -> None:
    known = {"argument", "error", "language", "model", "report", "resources"}
    for module in MODULES:
        for other in imported(module, within_functions=True):
            if module.startswith("mfmadsl.editor") and other.startswith("mfmadsl."):
                part = other.split(".")[1]
                assert part in {"editor", *known}, f"{module} imports {other}"
            if other.split(".")[0] in ("pygls", "lsprotocol"):
                assert module == "mfmadsl.editor.server", f"{module} imports {other}"
            if other.startswith("mfmadsl.editor"):
                assert module.startswith(("mfmadsl.editor", "mfmadsl.cli.lsp")), module


def test_the_emulator_is_a_witness_of_its_own() -> None:
    """It knows neither TVM nor what makes the kernels that it runs."""
    for module in MODULES:
        if module.startswith("mfmadsl.emulator"):
            for other in imported(module, within_functions=True):
                assert other.split(".")[0] not in ("tvm", "tvm_ffi"), f"{module} imports {other}"
                known = other.split(".")[:2]
                assert known not in [["mfmadsl", x] for x in UNKNOWN_TO_THE_EMULATOR], module


def test_packages_are_there_without_an_import_of_their_own() -> None:
    told = (
        "import sys, mfmadsl\n"
        "assert mfmadsl.language.reads() and mfmadsl.model.cpu('sapphirerapids').name\n"
        "assert 'tvm' not in sys.modules\n"
        "assert mfmadsl.export.FORMATS and mfmadsl.schedule.Tiling and mfmadsl.emulator.emulate\n"
    )
    subprocess.run([sys.executable, "-c", told], check=True)
