"""Commands that say where elements lie in other projects' words, and how theirs differ."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from mfmadsl.argument import check_path
from mfmadsl.cli.choice import Choice
from mfmadsl.cli.completion import compared, entry_names
from mfmadsl.cli.failure import fail
from mfmadsl.cli.specs import (
    ARCH,
    OPERAND,
    OUTPUT,
    SEARCH,
    SPEC,
    find,
    format_option,
    load_all,
    no_instruction,
)
from mfmadsl.cli.write import write_text
from mfmadsl.error import ArgumentError
from mfmadsl.export import (
    DIFFERENT,
    FORMATS,
    PEERS,
    Difference,
    ExportError,
    compare_layouts,
    diff_layouts,
    export_layouts,
    read_layouts,
)
from mfmadsl.model import Intrinsic, unscaled
from mfmadsl.report.formats import DIFFERENCE

_LARGEST_FILE = 1 << 24
"""Bytes of the largest JSON that is read: several times the library's longest."""

_OPERAND = click.option(
    "--operand",
    type=OPERAND,
    help="Of this one only.",
)


@click.command()
@click.argument("name", shell_complete=entry_names)
@click.option(
    "--as",
    "form",
    type=Choice(list(FORMATS)),
    required=True,
    help="In whose words: a project's, or every element as JSON or CSV.",
)
@SPEC
@SEARCH
@_OPERAND
@click.option("--arch", type=ARCH, help="Which chip, where chips differ in what NAME means.")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Where to write it.")
def export(
    name: str,
    form: str,
    spec: Path | None,
    search: tuple[Path, ...],
    operand: str | None,
    arch: str | None,
    output: Path | None,
) -> None:
    """Say where an instruction's elements lie, in the words of another project.

    What is printed was read back, and is the layout; what a project has no words for is refused.
    """
    intrinsic = find(name, spec, arch, search)
    try:
        text = export_layouts(intrinsic, form, operand, arch)
    except (ArgumentError, ExportError) as error:
        fail(str(error))
    if output is None:
        click.echo(text)
        return
    write_text(output, f"{text}\n")


@click.command()
@click.argument("name", shell_complete=entry_names)
@click.option(
    "--with",
    "other",
    required=True,
    shell_complete=compared,
    metavar="|".join([*PEERS, "NAME", "FILE"]),
    help="A project, another entry, a .mfma file's entry, or what `export --as json` wrote.",
)
@SPEC
@SEARCH
@_OPERAND
@click.option("--arch", type=ARCH, help="Which chip, where chips differ in what NAME means.")
@click.option("--unscaled", "plain", is_flag=True, help="Without the scales, which bind k.")
@format_option(DIFFERENCE)
def diff(
    name: str,
    other: str,
    spec: Path | None,
    search: tuple[Path, ...],
    operand: str | None,
    arch: str | None,
    plain: bool,
    form: str,
) -> None:
    """Compare an instruction's layouts with another project's, or with another entry's.

    The verdict on each operand is equal, equal up to the order of k, or different; 1 if any is
    different.
    """
    of_file = other.endswith(".mfma")
    intrinsic = find(name, spec, arch, () if of_file and spec is None else search)
    try:
        intrinsic = unscaled(intrinsic) if plain else intrinsic
        found = _difference(intrinsic, other, arch, search)
    except (ArgumentError, ExportError) as error:
        fail(str(error))
    if operand is not None:
        chosen = tuple(each for each in found.operands if each.operand == operand)
        if not chosen:
            fail(f"{intrinsic.name} and {found.other} do not both have an operand `{operand}`")
        found = replace(found, operands=chosen)
    click.echo(DIFFERENCE[form](found))
    if found.verdict == DIFFERENT:
        sys.exit(1)


def _difference(
    intrinsic: Intrinsic, other: str, arch: str | None, search: tuple[Path, ...]
) -> Difference:
    """Compared with whatever `other` names."""
    if other in PEERS:
        return diff_layouts(intrinsic, other, arch)
    if other.endswith(".json"):
        text = _text(check_path("--with", other))
        try:
            return compare_layouts(intrinsic, read_layouts(text, "json"), other)
        except ExportError as error:
            fail(f"{other}: {error}")
    if other.endswith(".mfma"):
        entry = _entry(intrinsic, Path(other), search)
        theirs = {operand.name: operand.layout for operand in entry.operands.values()}
        return compare_layouts(intrinsic, theirs, f"{entry.name} of {other}")
    return diff_layouts(intrinsic, find(other, arch=arch), arch)


def _text(path: Path) -> str:
    """What a file of JSON holds."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)  # a device may never end
    except OSError as error:
        fail(f"{path}: cannot be read: {error.strerror}")
    if len(content) > _LARGEST_FILE:
        fail(f"{path}: is larger than {_LARGEST_FILE >> 20} MiB, so it is no JSON of layouts")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        fail(f"{path}: cannot be read: it is not UTF-8 text")


def _entry(intrinsic: Intrinsic, path: Path, search: tuple[Path, ...]) -> Intrinsic:
    """The entry of a file that is called as the instruction is, or the only one that it has."""
    entries = load_all([path], search)
    if len(entries) == 1 and not isinstance(entries[0], Intrinsic):
        no_instruction(entries[0], path)
    described = [entry for entry in entries if isinstance(entry, Intrinsic)]
    called = [entry for entry in described if entry.is_called(intrinsic.name)]
    if not called and len(described) != 1:
        names = ", ".join(entry.name for entry in described) or "no instruction"
        fail(f"{path} has no `{intrinsic.name}`, but: {names}")
    return (called or described)[0]
