"""`mfmadsl show`: an entry, and where the elements of its operands lie."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from mfmadsl.cli.choice import Choice
from mfmadsl.cli.completion import entry_names
from mfmadsl.cli.failure import fail
from mfmadsl.cli.specs import (
    ARCH,
    OPERAND,
    OUTPUT,
    SEARCH,
    SPEC,
    Described,
    find_described,
    format_option,
    no_instruction,
    pairs_called,
)
from mfmadsl.cli.write import write_text
from mfmadsl.error import MfmadslError
from mfmadsl.model import (
    Accelerator,
    Fragment,
    Intrinsic,
    Microkernel,
    Modifiers,
    Read,
    check_modifiers,
)
from mfmadsl.report.formats import LAYOUT, LIBRARY, Window
from mfmadsl.report.picture.look import VIEWS, Look
from mfmadsl.report.picture.operand import SHADINGS, Shading

_TEXT = ("", "txt", "md", "log")  # endings of files of text, the table among them
_PICTURES = ("svg", "html")  # which show all operands, where nobody names one


@click.command()
@click.argument("name", shell_complete=entry_names)
@SPEC
@SEARCH
@click.option(
    "--operand",
    type=OPERAND,
    help="Of an instruction or a micro-kernel; if not given all in a picture, else a.",
)
@format_option(LAYOUT)
@click.option(
    "--view",
    type=Choice(list(VIEWS)),
    help="The matrix, what each register holds, or the banks of a tile in the LDS.",
)
@click.option(
    "--color",
    "--colour",
    "shading",
    type=Choice(SHADINGS),
    default=SHADINGS[0],
    show_default=True,
    help="What the colour of an element tells.",
)
@click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="Write it there.")
@click.option(
    "--arch",
    type=ARCH,
    help="Which one, where chips differ in what NAME means, and whose LDS is drawn.",
)
@click.option(
    "--k-pack",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="In --view banks, how many instructions a read of the LDS feeds.",
)
@click.option("--cbsz", type=click.IntRange(0, 7), default=0, help="log2 of the blocks that share.")
@click.option("--abid", type=click.IntRange(0, 15), default=0, help="The block of A they share.")
@click.option("--blgp", type=click.IntRange(0, 7), default=0, help="The pattern of B's lanes.")
def show(
    name: str, spec: Path | None, search: tuple[Path, ...], operand: str | None, form: str,
    view: str | None, shading: Shading, output: Path | None, arch: str | None, k_pack: int,
    cbsz: int, abid: int, blgp: int,
) -> None:  # fmt: skip
    """Show an entry, and where the elements of its operands lie."""
    form = _form(form, output)
    if pairs := pairs_called(name, spec, arch):
        _list_pairs(name, pairs, form, output)
        return
    described = find_described(name, spec, arch, search)
    if isinstance(described, Accelerator):
        no_instruction(described, spec)
    modifiers = Modifiers(cbsz, abid, blgp)
    given = {"cbsz": cbsz, "abid": abid, "blgp": blgp}
    colour = shading if shading != SHADINGS[0] else None
    _check_options(described, operand=operand, arch=arch, view=view, color=colour, **given)
    if k_pack > 1 and view != "banks":
        raise click.UsageError("--k-pack needs --view banks: what is read from the LDS at once?")
    if view == "banks" and any(given.values()):
        raise click.UsageError("--view banks shows the LDS, of which modifiers know nothing")
    look = Look(
        described, _operands(described, operand, form, view), _view(described, view), modifiers,
        shading, arch or "", k_pack,
    )  # fmt: skip
    try:
        if isinstance(described, Intrinsic):
            check_modifiers(described, modifiers)
        text = LAYOUT[form](look, Window() if output is not None else _window())
    except MfmadslError as error:
        fail(str(error))
    text = text.rstrip("\n") + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _list_pairs(name: str, pairs: list[Intrinsic], form: str, output: Path | None) -> None:
    """What there is of a name that says no types; a picture is of one of them."""
    several = f"{name} is {len(pairs)} instructions, by the types of A and B"
    if form != next(iter(LAYOUT)) or output is not None:
        fail(f"{several}: name one, such as {pairs[0].name}")
    click.echo(f"{several}; show one of them:\n")
    click.echo(next(iter(LIBRARY.values()))(pairs, []))


def _form(form: str, output: Path | None) -> str:
    """The format: where nobody says, that of the file's name."""
    source = click.get_current_context().get_parameter_source("form")
    if output is not None and source == click.core.ParameterSource.DEFAULT:
        suffix = output.suffix.removeprefix(".").lower()
        if suffix in LAYOUT:
            return suffix
        if suffix not in _TEXT:
            known = ", ".join(f".{each}" for each in (*LAYOUT, *_TEXT) if each)
            raise click.UsageError(
                f"-o {output}: there is no format .{suffix}, but {known}; --format says which,"
                " whatever the name is"
            )
    return form


def _operands(
    described: Described, operand: str | None, form: str, view: str | None
) -> tuple[str, ...]:
    if not isinstance(described, Intrinsic | Microkernel):
        return ()
    if operand is not None or form not in _PICTURES:
        return (operand or "a",)
    return ("a", "b") if view == "banks" else tuple(described.operands)


def _view(described: Described, view: str | None) -> str:
    """The view that is asked for; the registers of a micro-kernel, else the elements."""
    return view or ("registers" if isinstance(described, Microkernel) else "elements")


def _check_options(described: Described, **given: object) -> None:
    """End with a usage error if an option is given that such an entry has not."""
    lacking: dict[type, tuple[str, ...]] = {
        Read: ("operand", "arch", "cbsz", "abid", "blgp", "view", "color"),
        Fragment: ("operand", "arch", "cbsz", "abid", "blgp"),
        Microkernel: ("arch", "cbsz", "abid", "blgp", "color"),
    }
    for option in lacking.get(type(described), ()):
        if given[option]:
            kind = type(described).__name__.lower().replace("microk", "micro-k")
            raise click.UsageError(f"{described.name} is a {kind}, which has no --{option}")


def _window() -> Window:
    """The terminal, if it is one; COLUMNS says how wide the text is to be in any case."""
    terminal = sys.stdout.isatty()
    known = terminal or os.environ.get("COLUMNS", "").isdigit()
    width = shutil.get_terminal_size().columns if known else None
    return Window(width, terminal and not os.environ.get("NO_COLOR"))
