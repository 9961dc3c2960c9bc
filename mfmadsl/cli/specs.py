"""Reading `.mfma` files for a command, which ends if they have mistakes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from mfmadsl.argument import clipped
from mfmadsl.cli.choice import Choice
from mfmadsl.cli.failure import fail
from mfmadsl.error import ArgumentError
from mfmadsl.language import (
    Diagnostic,
    LanguageError,
    SpecFileError,
    library,
    load_entries,
    microkernels,
    reads,
)
from mfmadsl.language import find as find_intrinsic
from mfmadsl.language.document import SUFFIX
from mfmadsl.model import (
    CPUS,
    INDICES,
    PRODUCTS,
    Accelerator,
    Cpu,
    Fragment,
    Intrinsic,
    Microkernel,
    Read,
)
from mfmadsl.model.chip_name import CHIP_NAMES, chip_called, product_called, unknown_chip
from mfmadsl.model.intrinsic import spelled
from mfmadsl.model.products import NAMED, products_of
from mfmadsl.nearest import among_many, did_you_mean
from mfmadsl.output import OutputError, check_output

Problem = Diagnostic | SpecFileError
Described = Intrinsic | Accelerator | Read | Fragment | Microkernel
_Command = TypeVar("_Command", bound=Callable[..., Any])

SEARCH = click.option(
    "-I",
    "--include",
    "search",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where `use` looks, after the folder of the file; may be repeated.",
)


SPEC = click.option(
    "--spec", type=click.Path(path_type=Path), help="Take NAME from this .mfma file."
)
OPERAND = Choice(list(INDICES))


class _Chip(click.Choice[str]):
    """A chip with matrix cores, or a product that has one, which the command may want to know.

    For anything else it says why it is none.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        chip = chip_called(str(value))
        if chip is None:
            self.fail(unknown_chip(str(value)), param, ctx)
        product = product_called(str(value))
        if product is not None and ctx is not None:
            ctx.meta[_PRODUCT] = product.name
        return chip


_PRODUCT = "mfmadsl.product"


def product_asked(named: str | None = None, arch: str | None = None) -> str | None:
    """The product that is `named` by an option, or by `--arch` of this command, if that names one
    and not a chip.

    Raises click.UsageError where they contradict each other, or that and the chip `arch`.
    """
    own: str | None = click.get_current_context().meta.get(_PRODUCT)
    if named is None:
        return own
    if own is not None and own != named:
        raise click.UsageError(f"--arch names {own}, and --product {named}: leave one out")
    if arch is not None and (chip := PRODUCTS[named].arch) != arch:
        raise click.UsageError(f"--product: {named} has {chip}, and --arch says {arch}")
    return named


class _Product(Choice):
    """A product of which there is a record."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if (chip := NAMED.get(str(value).upper())) is not None:
            known = ", ".join(product.name for product in products_of(chip))
            told = f"of {value} only the chip is known: name a product that has the same, {known}"
            self.fail(told, param, ctx)
        return super().convert(value, param, ctx)


ARCH = _Chip(CHIP_NAMES)
PRODUCT = _Product(list(PRODUCTS), case_sensitive=False)
NATIVE = "native"


class _Machine(click.Choice[str]):
    """A chip with matrix cores, a CPU, or the CPU that this runs on."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        found = chip_called(text) or text.lower()
        if found not in self.choices:
            why = unknown_chip(text)
            if why.startswith("unknown"):
                why = f"`{clipped(text)}` is no chip and no CPU: {did_you_mean(text, self.choices)}"
            self.fail(why, param, ctx)
        return found


MACHINE = _Machine([*CHIP_NAMES, *CPUS, NATIVE])


def cpu_of(machine: str) -> Cpu | None:
    """The CPU of that name, or this one; None if it is a chip's name."""
    if machine == NATIVE:
        from mfmadsl.host.cpu import host_cpu  # TVM knows, and takes a second to import

        return host_cpu()
    return CPUS.get(machine)


def format_option(formats: Iterable[str]) -> Callable[[_Command], _Command]:
    """`--format`, which is one of these, and the first one if nobody says."""
    choices = list(formats)
    return click.option(
        "--format", "form", type=Choice(choices), default=choices[0], show_default=True
    )


class OutputPath(click.Path):
    """Where a file is written: refused before any work is done if it can name none."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of a file to write. Raises BadParameter if it can name none."""
        try:
            check_output(str(value))
        except OutputError as error:
            self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


OUTPUT = OutputPath()


def loaded(
    paths: Iterable[Path], search: tuple[Path, ...]
) -> tuple[list[Described], list[Problem]]:
    """What all files describe, and all of their mistakes."""
    described: list[Described] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            entries = load_entries(path, search)
            described += [
                *entries.intrinsics, *entries.accelerators, *entries.reads, *entries.fragments,
                *entries.microkernels,
            ]  # fmt: skip
        except (LanguageError, SpecFileError) as error:
            problems += problems_of(error)
    # Files that use the same broken file find the same mistakes in it.
    return described, list(dict.fromkeys(problems))


def problems_of(error: LanguageError | SpecFileError) -> list[Problem]:
    """The mistakes that an error tells, each by itself."""
    return [error] if isinstance(error, SpecFileError) else list(error.diagnostics)


def load_all(paths: Iterable[Path], search: tuple[Path, ...] = ()) -> list[Described]:
    """What all files describe; with a mistake in any, all mistakes and the end."""
    described, problems = loaded(paths, search)
    if problems:
        refuse(problems)
    return described


def refuse(problems: list[Problem]) -> NoReturn:
    """Print mistakes and end with exit code 1."""
    told = [f"error: {p}" if isinstance(p, SpecFileError) else str(p) for p in problems]
    count = sum(isinstance(p, SpecFileError) or p.code != "stopped" for p in problems)
    more = " and more" * (count < len(problems))
    mistakes = f"{count} mistake{'s' * (count > 1)}{more}"
    click.echo("\n\n".join([*told, mistakes]), err=True)
    sys.exit(1)


def find(
    name: str, spec: Path | None = None, arch: str | None = None, search: tuple[Path, ...] = ()
) -> Intrinsic:
    """An intrinsic of a file, or of the library; of several of that name the one of the chip."""
    if search and spec is None:
        raise click.UsageError("-I needs --spec: where is what `use` names looked for?")
    if spec is not None:
        found = _of_file(name, spec, arch, search)
        return found if isinstance(found, Intrinsic) else no_instruction(found, spec)
    try:
        return find_intrinsic(name, arch)
    except ArgumentError as error:
        fail(str(error))


def pairs_called(name: str, spec: Path | None, arch: str | None) -> list[Intrinsic]:
    """The instructions of a name that a chip has several of, by the types of A and B; else none."""
    if spec is not None:
        return []
    called = [i for i in library().values() if i.is_called(name) and arch in (None, *i.chips)]
    if any(spelled(name) in (i.name, i.name.replace("_scale_", "_")) for i in called):
        return []
    chips = [chip for i in called for chip in i.chips]
    return called if len(set(chips)) < len(chips) else []


def find_described(
    name: str, spec: Path | None, arch: str | None, search: tuple[Path, ...]
) -> Described:
    """Whatever is called so in a file, or in the library."""
    if spec is not None:
        return _of_file(name, spec, arch, search)
    if name.endswith(SUFFIX):
        fail(f"{clipped(name)} is a file: name an entry of it, and give the file by --spec")
    others: dict[str, Described] = {**reads(), **microkernels()}
    if name.lower() in others:
        return others[name.lower()]
    if not any(each.is_called(name) for each in library().values()):
        names = [*library(), *others]
        within = [each for each in names if spelled(name) in each]
        hint = among_many(spelled(name), names)
        if spelled(name) and len(within) > 1:
            hint = f"{len(within)} have that in their names, see `mfmadsl list {clipped(name)}`"
        fail(f"nothing in the library is called `{clipped(name)}`: {hint}")
    return find(name, arch=arch, search=search)


def no_instruction(found: Described, spec: Path | None) -> NoReturn:
    """Say what it is instead."""
    kind = type(found).__name__.lower()
    article = "an" if kind[0] in "aeiou" else "a"
    fail(f"{spec}: `{found.name}` is {article} {kind}, and no instruction")


def _of_file(name: str, spec: Path, arch: str | None, search: tuple[Path, ...]) -> Described:
    every = load_all([spec], search)
    named = [
        entry
        for entry in every
        if (entry.is_called(name) if isinstance(entry, Intrinsic) else entry.name == name)
    ]
    of_chip = [e for e in named if not isinstance(e, Intrinsic) or arch in (None, *e.chips)]
    if not named:
        names = ", ".join(entry.name for entry in every) or "nothing"
        fail(f"{spec} has no `{name}`, but: {names}")
    return (of_chip or named)[0]
