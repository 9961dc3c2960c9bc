"""The command `mfmadsl`.

Exit codes: 0, 1 if the input is wrong, 2 if the call is wrong, 130 after an interrupt.
"""

from __future__ import annotations

# click: the standard for command lines; does usage errors, help and exit code 2 for us.
import click

from mfmadsl import __version__
from mfmadsl.cli.device import device
from mfmadsl.cli.explain import explain_option
from mfmadsl.cli.explore import explore
from mfmadsl.cli.export import diff, export
from mfmadsl.cli.failure import Commands
from mfmadsl.cli.gemm import gemm
from mfmadsl.cli.kernel import emulate, profile, sanitize
from mfmadsl.cli.library import check, compile_command, fmt, list_command, schema
from mfmadsl.cli.show import show
from mfmadsl.cli.tune import tune


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mfmadsl")
@explain_option
def main() -> None:
    """Matrix-core instructions, written down once."""


for command in (
    check, fmt, schema, compile_command, list_command, show, explore, export, diff, gemm, emulate,
    sanitize, profile, device, tune,
):  # fmt: skip
    main.add_command(command)
