"""Commands on `.mfma` files and on the library."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from mfmadsl.cli.completion import entry_names
from mfmadsl.cli.failure import fail, print_json
from mfmadsl.cli.specs import (
    ARCH,
    MACHINE,
    SEARCH,
    Problem,
    cpu_of,
    find_described,
    format_option,
    load_all,
    loaded,
    no_instruction,
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
from mfmadsl.model import Fragment, Intrinsic, Microkernel, Modifiers, Read, check_modifiers
from mfmadsl.report import (
    json_schema,
    read_summary,
    read_table,
)
from mfmadsl.report.formats import LAYOUT, LIBRARY, VECTORS

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
    for described in load_all(specs, search):
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
        click.echo("no module is made: reads and fragments are described only", err=True)


@click.command("list")
@click.option(
    "--arch", type=MACHINE, help="Only what this chip or CPU has; `native` is this machine's CPU."
)
@format_option(LIBRARY)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
def list_command(arch: str | None, form: str) -> None:
    """List the library."""
    cpu = cpu_of(arch) if arch else None
    intrinsics = [i for i in library_intrinsics().values() if arch is None or arch in i.chips]
    kernels = [
        m for m in microkernels().values() if arch is None or (cpu and not cpu.missing(m.features))
    ]
    click.echo(LIBRARY[form](intrinsics, kernels))


@click.command()
@click.argument("name", shell_complete=entry_names)
@click.option("--spec", type=click.Path(path_type=Path), help="Take NAME from this .mfma file.")
@SEARCH
@click.option(
    "--operand",
    type=click.Choice(["a", "b", "c", "index", "scale_a", "scale_b"]),
    help="Of an instruction or a micro-kernel, a if not given; a fragment has but one.",
)
@format_option(LAYOUT)
@click.option("--arch", type=ARCH, help="Which one, where chips differ in what NAME means.")
@click.option("--cbsz", type=click.IntRange(0, 7), default=0, help="log2 of the blocks that share.")
@click.option("--abid", type=click.IntRange(0, 15), default=0, help="The block of A they share.")
@click.option("--blgp", type=click.IntRange(0, 7), default=0, help="The pattern of B's lanes.")
def show(
    name: str,
    spec: Path | None,
    search: tuple[Path, ...],
    operand: str | None,
    form: str,
    arch: str | None,
    cbsz: int,
    abid: int,
    blgp: int,
) -> None:
    """Show an entry, and where the elements of one operand lie."""
    described = find_described(name, spec, arch, search)
    modifiers = Modifiers(cbsz, abid, blgp)
    if isinstance(described, Read):
        if form != "table":
            fail(f"{name} is a read, which is shown as a table only")
        click.echo(f"{read_summary(described)}\n\nEach register as lane:element it comes from\n")
        click.echo(read_table(described))
    elif isinstance(described, Fragment):
        _refuse_options(
            f"{name} is a fragment", operand=operand, arch=arch, cbsz=cbsz, abid=abid, blgp=blgp
        )
        click.echo(LAYOUT[form](described, described.operand, modifiers))
    elif isinstance(described, Microkernel):
        _refuse_options(f"{name} is a micro-kernel", arch=arch, cbsz=cbsz, abid=abid, blgp=blgp)
        try:
            held = described.operand(operand or "a")
        except ArgumentError as error:
            fail(str(error))
        click.echo(VECTORS[form](described, held))
    elif isinstance(described, Intrinsic):
        try:
            chosen = described.operand(operand or "a")
            check_modifiers(described, modifiers)
        except ArgumentError as error:
            fail(str(error))
        click.echo(LAYOUT[form](described, chosen, modifiers))
    else:
        no_instruction(described, spec)


def _refuse_options(what: str, **given: object) -> None:
    """End with a usage error if an option is given that such an entry has not."""
    if options := [option for option, value in given.items() if value]:
        raise click.UsageError(f"{what}, which has no --{options[0]}")
