"""The command `mfmadsl`.

Exit codes: 0, 1 if the input is wrong, 2 if the call is wrong, 130 after an interrupt.
"""

from __future__ import annotations

from importlib import import_module

# click: the standard for command lines; does usage errors, help and exit code 2 for us.
import click

from mfmadsl.argument import clipped
from mfmadsl.cli.explain import explain_option
from mfmadsl.cli.failure import Commands, fail
from mfmadsl.version import __version__

_COMMANDS = {
    "check": "library.check",
    "fmt": "library.fmt",
    "schema": "library.schema",
    "compile": "library.compile_command",
    "list": "library.list_command",
    "show": "show.show",
    "explore": "explore.explore",
    "export": "export.export",
    "diff": "export.diff",
    "gemm": "gemm.gemm",
    "emulate": "kernel.emulate",
    "sanitize": "kernel.sanitize",
    "profile": "profile.profile",
    "device": "device.device",
    "tune": "tune.tune",
    "lsp": "lsp.lsp",
    "doctor": "doctor.doctor",
    "completion": "completion.completion",
}
"""Each command, and where it is, below `mfmadsl.cli`."""

_WHOLE = 1000
"""Characters that no sentence has."""


class _Lazy(Commands):
    """Commands that are imported when they are called: one is no slower for the others, and
    `doctor` runs where what others import is broken."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_COMMANDS, *super().list_commands(ctx)})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Whole sentences, which click would cut."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(n, c.get_short_help_str(_WHOLE)) for n, c in commands if c])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the command that was meant."""
        name = args[0]
        known = self.list_commands(ctx)
        if not name.startswith("-") and name not in known:
            from mfmadsl.nearest import did_you_mean

            ctx.fail(f"No such command '{clipped(name)}': {did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = _COMMANDS[cmd_name].partition(".")
        try:
            found = getattr(import_module(f"mfmadsl.cli.{module}"), name)
        except ImportError as error:
            fail(f"{error}: `mfmadsl doctor` tells what is missing, and what to do")
        return found if isinstance(found, click.Command) else None


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mfmadsl")
@explain_option
def main() -> None:
    """Matrix-core instructions, written down once."""
