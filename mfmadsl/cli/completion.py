"""`mfmadsl completion SHELL`, and what the shell is offered where names of ours are wanted.

A shell asks at each press of a key: nothing here imports TVM.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import ShellComplete, get_completion_class

from mfmadsl.cli.choice import Choice
from mfmadsl.cli.mistakes import sections
from mfmadsl.error import MfmadslError

if TYPE_CHECKING:
    from mfmadsl.model import Fragment, Intrinsic, Microkernel, Read

_PROGRAM, _VARIABLE = "mfmadsl", "_MFMADSL_COMPLETE"
_START = {
    "bash": 'eval "$(mfmadsl completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(mfmadsl completion zsh)" in ~/.zshrc, after compinit',
    "fish": "mfmadsl completion fish > ~/.config/fish/completions/mfmadsl.fish",
}


@click.command(
    help="Print a script that has a shell complete commands, options and names.\n\n\b\n"
    + "\n".join(f"{shell:<5} {line}" for shell, line in _START.items())
)
@click.argument("shell", type=Choice(list(_START)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script of a shell."""
    kind = get_completion_class(shell)
    if kind is not None:  # click has all three
        script = kind(context.find_root().command, {}, _PROGRAM, _VARIABLE)
        # That of the base: bash's own would look for a bash and its version here, where the
        # script may not run at all.
        click.echo(ShellComplete.source(script))


def entry_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Whatever `show` takes: of the file that --spec names, or of the library."""
    from mfmadsl.language import microkernels, reads

    if ctx.params.get("spec") is not None:
        return _names_in(ctx, incomplete)
    return _beginning(incomplete, [*_instructions(incomplete), *reads(), *microkernels()])


def instruction_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Whatever `gemm --intrinsic` takes."""
    if ctx.params.get("spec") is not None:
        return _names_in(ctx, incomplete)
    return _beginning(incomplete, _instructions(incomplete))


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Codes of mistakes."""
    return _beginning(incomplete, sections())


def steps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The last of the steps of an epilogue, after those that are there."""
    from mfmadsl.epilogue import STEPS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(last, STEPS)]


def tiling_fields(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The fields of a tiling, each of which wants a value."""
    from mfmadsl.cli.gemm_options import TILING_FIELDS

    return _beginning(incomplete, [f"{name}=" for name in TILING_FIELDS])


def compared(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What `diff` compares with: projects, and other entries."""
    from mfmadsl.export import PEERS

    return _beginning(incomplete, [*PEERS, *_instructions(incomplete)])


def _instructions(incomplete: str) -> list[str]:
    """Names of the library; the other names of an instruction only where one has begun."""
    from mfmadsl.language import library

    found = library()
    others = [name for each in found.values() for name in each.mnemonics]
    return [*found, *(name for name in others if incomplete.startswith("v_"))]


def _names_in(ctx: click.Context, incomplete: str) -> list[str]:
    """What the file of --spec describes; nothing if it is none, or has mistakes."""
    from mfmadsl.language import load_entries

    try:
        entries = load_entries(Path(ctx.params["spec"]), tuple(ctx.params.get("search") or ()))
    except MfmadslError:
        return []
    every: tuple[Intrinsic | Read | Fragment | Microkernel, ...] = (
        *entries.intrinsics, *entries.reads, *entries.fragments, *entries.microkernels,
    )  # fmt: skip
    return _beginning(incomplete, [each.name for each in every])


def _beginning(start: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(start)})
