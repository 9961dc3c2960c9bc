"""Commands on `.mfma` files and on the library."""

from __future__ import annotations

import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import click

from mfmadsl.argument import clipped
from mfmadsl.cli.failure import fail, print_json
from mfmadsl.cli.specs import (
    MACHINE,
    SEARCH,
    Problem,
    cpu_of,
    format_option,
    load_all,
    loaded,
    problems_of,
    refuse,
)
from mfmadsl.error import ArgumentError
from mfmadsl.language import (
    LanguageError,
    SpecFileError,
    library_files,
    microkernels,
    read_source,
)
from mfmadsl.language import library as library_intrinsics
from mfmadsl.model import Fragment, Intrinsic, Microkernel, Read
from mfmadsl.model.intrinsic import spelled
from mfmadsl.report import json_schema
from mfmadsl.report.formats import LIBRARY

_SPECS = click.argument("specs", nargs=-1, type=click.Path(path_type=Path))


@click.command()
@_SPECS
@SEARCH
@format_option(("text", "json"))
def check(specs: tuple[Path, ...], search: tuple[Path, ...], form: str) -> None:
    """Check .mfma files (without any: the library) and tell every mistake."""
    if form == "json":
        entries, problems = loaded(specs or library_files(), search)
        counts = {
            f"{kind.__name__.lower()}s": sum(isinstance(entry, kind) for entry in entries)
            for kind in (Intrinsic, Microkernel)
        }
        print_json({**counts, "diagnostics": [p.as_json() for p in problems]})
        sys.exit(1 if problems else 0)
    described = load_all(specs or library_files(), search)
    kinds = Counter(type(entry).__name__.lower() for entry in described)
    told = [f"{n} {kind}{'s' * (n != 1)}" for kind, n in kinds.items()] or ["nothing described"]
    click.echo(f"{', '.join(told)}, no mistakes")


@click.command()
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--check", "check_only", is_flag=True, help="Change nothing; 1 if something would.")
def fmt(specs: tuple[Path, ...], check_only: bool) -> None:
    """Bring .mfma files into their canonical form."""
    from mfmadsl.language.formatter import format_source
    from mfmadsl.output import OutputError, write_file

    changed: dict[Path, str] = {}
    problems: list[Problem] = []
    for path in specs:
        try:
            source = read_source(path)
            if not path.is_file():
                raise SpecFileError(path, "is no file that could be changed in place")
            text = format_source(source)
        except (LanguageError, SpecFileError) as error:
            problems += problems_of(error)
            continue
        if text != source.text:
            changed[path] = text
    if problems:
        refuse(problems)
    for path, text in changed.items():
        if not check_only:
            try:
                write_file(path, text.encode())
            except OutputError as error:
                fail(str(error))
        click.echo(f"{'would change' if check_only else 'changed'} {path}")
    if changed and check_only:
        sys.exit(1)


@click.command()
def schema() -> None:
    """Print the JSON schema of all that other commands print as JSON."""
    print_json(json_schema())


@click.command("compile")
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder, which becomes a package; what the modules share is written there, too.",
)
@click.option(
    "--k-pack",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Make each module that of N instructions in a row, on elements that lie together along k.",
)
@SEARCH
def compile_command(
    specs: tuple[Path, ...], output: Path, k_pack: int, search: tuple[Path, ...]
) -> None:
    """Write one importable Python module for each entry of .mfma files."""
    from mfmadsl.codegen import ModuleError, module_name, module_text, write_modules
    from mfmadsl.output import OutputError

    texts: dict[str, str] = {}
    names: set[str] = set()
    entries = load_all(specs, search)
    for described in entries:
        if isinstance(described, Read | Fragment):
            continue  # it is no TensorIntrin: kernels call a read themselves, and hold a fragment
        if described.name in names:
            fail(f"`{described.name}` is defined in more than one of the files")
        names.add(described.name)
        try:
            texts[module_name(described, k_pack)] = module_text(described, k_pack)
        except (ArgumentError, ModuleError) as error:
            fail(str(error))
    try:
        paths = write_modules(texts, output)
    except OutputError as error:
        fail(str(error))
    for path in paths:
        click.echo(bytes(path))  # as it is, even if it is no text
    if not texts:
        kinds = "reads and fragments are described only" if entries else "nothing is described"
        click.echo(f"no module is made: {kinds}", err=True)


@click.command("list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option(
    "--arch", type=MACHINE, help="Only what this chip or CPU has; `native` is this machine's CPU."
)
@format_option(LIBRARY)
def list_command(patterns: tuple[str, ...], arch: str | None, form: str) -> None:
    """List the library, or what of it has a PATTERN in its name.

    `*`, `?` and `[...]` stand for text, as in a shell: `mfmadsl list '32x32*bf16' smfmac`.
    """
    cpu = cpu_of(arch) if arch else None
    named = _named(patterns)
    intrinsics = [i for i in library_intrinsics().values() if arch is None or arch in i.chips]
    kernels = [
        m for m in microkernels().values() if arch is None or (cpu and not cpu.missing(m.features))
    ]
    click.echo(
        LIBRARY[form](
            [i for i in intrinsics if i.name in named], [m for m in kernels if m.name in named]
        )
    )


def _named(patterns: tuple[str, ...]) -> set[str]:
    """The entries that have one of the patterns in a name: all, if there is no pattern."""
    names = {i.name: [i.name, *i.spellings] for i in library_intrinsics().values()}
    names |= {name: [name] for name in microkernels()}
    found: set[str] = set()
    for pattern in patterns or ("",):
        wanted = f"*{spelled(pattern)}*"
        matching = {
            name for name, others in names.items() if any(fnmatchcase(o, wanted) for o in others)
        }
        if not matching:
            fail(f"no name in the library has `{clipped(pattern)}` in it")
        found |= matching
    return found
