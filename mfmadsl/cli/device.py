"""`mfmadsl device`: a program, with an emulated GPU in the place of a real one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mfmadsl.cli.failure import fail
from mfmadsl.cli.specs import ARCH, OUTPUT, PRODUCT, product_asked
from mfmadsl.cli.write import write_text
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.model import DEFAULT_ARCH, PRODUCTS

MOST_DEVICES = 16
"""As `device/hip/runtime.h` has it."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--arch",
    type=ARCH,
    help=f"The chip that the GPU has, or the product; {DEFAULT_ARCH} if nobody says another.",
)
@click.option(
    "--product",
    type=PRODUCT,
    help="Which product it is; the first with the chip by default.",
)
@click.option(
    "--sanitize", is_flag=True, help="Look for what the chip does not define; exit 1 if it is met."
)
@click.option(
    "--profile",
    type=OUTPUT,
    metavar="FILE",
    help="Write what each launch takes in the model of the chip, for ui.perfetto.dev.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    help="Instructions that a wave may execute; ten million by default.",
)
@click.option(
    "--devices",
    type=click.IntRange(1, MOST_DEVICES),
    default=1,
    help="How many of them there are, all alike; 1 by default.",
)
@click.option("--log", is_flag=True, help="Tell of each launch, and why calls of HIP fail.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def device(
    arch: str | None,
    product: str | None,
    sanitize: bool,
    profile: Path | None,
    budget: int | None,
    devices: int,
    log: bool,
    command: tuple[str, ...],
) -> None:
    """Run a program that uses HIP: `mfmadsl device -- COMMAND...`.

    The program finds an emulated GPU behind libamdhip64.so. The exit code is the program's own; it
    is 1 where that would be 0 and a kernel was at fault.
    """
    from mfmadsl.device import Options, run_program
    from mfmadsl.emulator.run import BUDGET
    from mfmadsl.report.program_timeline import program_timeline_json

    product = product or product_asked()
    if arch is None:
        arch = DEFAULT_ARCH if product is None else PRODUCTS[product].arch
    options = Options(arch, product, sanitize, log, profile is not None, budget or BUDGET, devices)
    try:
        ended = run_program(command, options)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    except MfmadslError as error:
        fail(str(error))
    if profile is not None:
        write_text(profile, program_timeline_json(ended.launches, ended.product.launch))
    sys.exit(ended.exit_code or int(ended.faulty))
