"""The command line: parsing arguments and printing, nothing else.

Exit codes: 0, 1 if the input is wrong, 2 if the call is wrong.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

# click: the standard for command lines; does usage errors, help and exit code 2 for us.
import click

from mfmadsl import __version__
from mfmadsl.language import (
    Diagnostic,
    LanguageError,
    SpecFileError,
    library_files,
    load_entries,
    read_source,
)
from mfmadsl.language import find as find_intrinsic
from mfmadsl.language import library as library_intrinsics
from mfmadsl.model import ARCHITECTURES, Accelerator, Intrinsic, Modifiers, check_modifiers
from mfmadsl.report import (
    intrinsic_json,
    intrinsic_summary,
    intrinsic_table,
    json_schema,
    kernel_json,
    kernel_summary,
    layout_json,
    layout_table,
)

if TYPE_CHECKING:
    from mfmadsl.gemm import Comparison, Gemm
    from mfmadsl.target import Kernel

Problem = Diagnostic | SpecFileError

_ARCH = click.Choice(list(ARCHITECTURES))
_SPECS = click.argument("specs", nargs=-1, type=click.Path(path_type=Path))
_SEARCH = click.option(
    "-I",
    "--include",
    "search",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where `use` looks, after the folder of the file; may be repeated.",
)
_SUFFIXES = {"tir": ".tir.py", "llvm": ".ll", "asm": ".s", "hsaco": ".hsaco", "json": ".json"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mfmadsl")
def main() -> None:
    """Matrix-core instructions, written down once."""


@main.command()
@_SPECS
@_SEARCH
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def check(specs: tuple[Path, ...], search: tuple[Path, ...], form: str) -> None:
    """Check .mfma files (without any: the library) and tell every mistake."""
    if form == "json":
        entries, problems = _loaded(specs or library_files(), search)
        count = sum(isinstance(entry, Intrinsic) for entry in entries)
        _print_json({"intrinsics": count, "diagnostics": [p.as_json() for p in problems]})
        sys.exit(1 if problems else 0)
    described = _load_all(specs or library_files(), search)
    kinds = Counter(type(entry).__name__.lower() for entry in described)
    told = [f"{n} {kind}{'s' * (n != 1)}" for kind, n in kinds.items()] or ["nothing described"]
    click.echo(f"{', '.join(told)}, no mistakes")


@main.command()
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--check", "check_only", is_flag=True, help="Change nothing; 1 if something would.")
def fmt(specs: tuple[Path, ...], check_only: bool) -> None:
    """Bring .mfma files into their canonical form."""
    from mfmadsl.codegen.write import OutputError, write_file
    from mfmadsl.language.formatter import format_source

    changed: dict[Path, str] = {}
    problems: list[Problem] = []
    for path in specs:
        try:
            source = read_source(path)
            text = format_source(source)
        except (LanguageError, SpecFileError) as error:
            problems += _problems_of(error)
            continue
        if text != source.text:
            changed[path] = text
    if problems:
        _refuse(problems)
    for path, text in changed.items():
        if not check_only:
            try:
                write_file(path, text.encode())
            except OutputError as error:
                _fail(str(error))
        click.echo(f"{'would change' if check_only else 'changed'} {path}")
    if changed and check_only:
        sys.exit(1)


@main.command()
def schema() -> None:
    """Print the JSON schema of what `list --json`, `show` and `check` print as JSON."""
    _print_json(json_schema())


@main.command("compile")
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="DIR")
@_SEARCH
def compile_command(specs: tuple[Path, ...], output: Path, search: tuple[Path, ...]) -> None:
    """Write one importable Python module for each intrinsic of .mfma files."""
    from mfmadsl.codegen import OutputError, module_text, write_modules

    texts: dict[str, str] = {}
    for described in _load_all(specs, search):
        if described.name in texts:
            _fail(f"`{described.name}` is defined in more than one of the files")
        texts[described.name] = module_text(described)
    try:
        paths = write_modules(texts, output)
    except OutputError as error:
        _fail(str(error))
    for path in paths:
        click.echo(path)


@main.command("list")
@click.option("--arch", type=_ARCH, help="Only what this chip has.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list instead of a table.")
def list_command(arch: str | None, as_json: bool) -> None:
    """List the library."""
    chosen = [i for i in library_intrinsics().values() if arch is None or arch in i.chips]
    if as_json:
        _print_json([intrinsic_json(i) for i in chosen])
    else:
        click.echo(intrinsic_table(chosen))


@main.command()
@click.argument("name")
@click.option(
    "--operand",
    type=click.Choice(["a", "b", "c", "index", "scale_a", "scale_b"]),
    default="a",
    show_default=True,
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@click.option("--arch", type=_ARCH, help="Which one, where chips differ in what NAME means.")
@click.option("--cbsz", type=click.IntRange(0, 7), default=0, help="log2 of the blocks that share.")
@click.option("--abid", type=click.IntRange(0, 15), default=0, help="The block of A they share.")
@click.option("--blgp", type=click.IntRange(0, 7), default=0, help="The pattern of B's lanes.")
def show(
    name: str, operand: str, form: str, arch: str | None, cbsz: int, abid: int, blgp: int
) -> None:
    """Show an intrinsic and where the elements of one operand lie."""
    intrinsic = _find(name, arch=arch)
    modifiers = Modifiers(cbsz, abid, blgp)
    try:
        chosen = intrinsic.operand(operand)
        check_modifiers(intrinsic, modifiers)
    except ValueError as error:
        _fail(str(error))
    if form == "json":
        _print_json(layout_json(intrinsic, chosen, modifiers))
        return
    packed = "[bits]" if chosen.sparse or chosen.type.bits < 32 else ""
    click.echo(intrinsic_summary(intrinsic))
    click.echo(f"\n{operand.upper()}, each element as lane:register{packed}\n")
    click.echo(layout_table(chosen, modifiers))


@main.command()
@click.option("--intrinsic", "name", required=True, metavar="NAME", help="See `mfmadsl list`.")
@click.option("--spec", type=click.Path(path_type=Path), help="Take NAME from this .mfma file.")
@click.option("--arch", type=_ARCH, required=True)
@click.option("-m", type=click.IntRange(1), required=True)
@click.option("-n", type=click.IntRange(1), required=True)
@click.option("-k", type=click.IntRange(1), required=True)
@click.option("--trans-b", is_flag=True, help="B lies as N x K.")
@click.option(
    "--emit",
    "kinds",
    type=click.Choice(list(_SUFFIXES)),
    multiple=True,
    help="What to print or write; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write it; with several --emit, a suffix is added for each.",
)
@click.option("--emulate", "emulated", is_flag=True, help="Run the machine code; compare to NumPy.")
def gemm(
    name: str,
    spec: Path | None,
    arch: str,
    m: int,
    n: int,
    k: int,
    trans_b: bool,
    kinds: tuple[str, ...],
    output: Path | None,
    emulated: bool,
) -> None:
    """Schedule C = A x B with one intrinsic and generate its kernel."""
    if output is not None and not kinds:
        raise click.UsageError("-o needs --emit: what is to be written?")
    if output is None and (len(kinds) > 1 or "hsaco" in kinds):
        raise click.UsageError("give -o FILE: only one kind of text can go to the terminal")
    intrinsic = _find(name, spec, arch)
    from mfmadsl.gemm import Gemm

    problem = Gemm(intrinsic, arch, m, n, k, trans_b)
    schedule, kernel = _built(problem)
    comparison = problem.check(kernel) if emulated else None
    if kinds:
        _emit(kinds, output, str(schedule.mod.script()), kernel, comparison)
    else:
        click.echo(kernel_summary(kernel))
    if comparison is not None:
        _report(comparison, problem, to_stderr=bool(kinds) and output is None)
        if not comparison.agrees:
            sys.exit(1)


def _built(problem: Gemm) -> tuple[Any, Kernel]:
    from mfmadsl.target import CodegenError, LinkError, LoweringError, build
    from mfmadsl.tensorize import ScheduleError

    try:
        schedule = problem.schedule()
        return schedule, build(schedule, problem.arch)
    except (ScheduleError, LoweringError, CodegenError, LinkError) as error:
        _fail(str(error))


def _emit(
    kinds: tuple[str, ...],
    output: Path | None,
    tir: str,
    kernel: Kernel,
    comparison: Comparison | None,
) -> None:
    from mfmadsl.codegen import OutputError, write_file

    if "hsaco" in kinds and kernel.code_object is None:
        _fail("no linker found for a code object: install lld, or `pip install ziglang`")
    paths = {
        kind: (output.with_name(output.name + _SUFFIXES[kind]) if len(kinds) > 1 else output)
        for kind in kinds
        if output is not None
    }
    description = kernel_json(kernel, [str(path) for path in paths.values()])
    if comparison is not None:
        description["emulation"] = {
            "largest_error": comparison.error,
            "tolerance": comparison.tolerance,
            "agrees": comparison.agrees,
        }
    contents = {
        "tir": tir.encode(),
        "llvm": kernel.llvm_ir.encode(),
        "asm": kernel.assembly.encode(),
        "hsaco": kernel.code_object or b"",
        "json": (json.dumps(description, indent=2) + "\n").encode(),
    }
    if not paths:
        click.echo(contents[kinds[0]].decode(), nl=False)
        return
    try:
        for kind, path in paths.items():
            write_file(path, contents[kind])
    except OutputError as error:
        _fail(str(error))


def _report(comparison: Comparison, problem: Gemm, to_stderr: bool) -> None:
    rule = problem.tolerance_rule
    verdict = "agrees with" if comparison.agrees else "DIFFERS from"
    click.echo(
        f"emulated   {verdict} NumPy in float64: largest error {comparison.error:.3g} "
        f"at C[{comparison.row}, {comparison.column}], "
        f"tolerance {comparison.tolerance:.3g} ({rule})",
        err=to_stderr,
    )


def _loaded(
    paths: Iterable[Path], search: tuple[Path, ...]
) -> tuple[list[Intrinsic | Accelerator], list[Problem]]:
    """What all files describe, and all of their mistakes."""
    described: list[Intrinsic | Accelerator] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            entries = load_entries(path, search)
            described += [*entries.intrinsics, *entries.accelerators]
        except (LanguageError, SpecFileError) as error:
            problems += _problems_of(error)
    # Files that use the same broken file find the same mistakes in it.
    return described, list(dict.fromkeys(problems))


def _problems_of(error: LanguageError | SpecFileError) -> list[Problem]:
    return [error] if isinstance(error, SpecFileError) else list(error.diagnostics)


def _load_all(
    paths: Iterable[Path], search: tuple[Path, ...] = ()
) -> list[Intrinsic | Accelerator]:
    """What all files describe; with a mistake in any, all mistakes and the end."""
    described, problems = _loaded(paths, search)
    if problems:
        _refuse(problems)
    return described


def _refuse(problems: list[Problem]) -> NoReturn:
    told = [f"error: {p}" if isinstance(p, SpecFileError) else str(p) for p in problems]
    mistakes = f"{len(problems)} mistake{'s' * (len(problems) > 1)}"
    click.echo("\n\n".join([*told, mistakes]), err=True)
    sys.exit(1)


def _find(name: str, spec: Path | None = None, arch: str | None = None) -> Intrinsic:
    if spec is not None:
        found = [entry for entry in _load_all([spec]) if isinstance(entry, Intrinsic)]
        for intrinsic in found:
            if intrinsic.is_called(name):
                return intrinsic
        _fail(f"{spec} has no `{name}`, but: {', '.join(i.name for i in found) or 'nothing'}")
    try:
        return find_intrinsic(name, arch)
    except ValueError as error:
        _fail(str(error))


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2))


def _fail(message: str) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(1)
