"""`mfmadsl device`: a program, with an emulated GPU in the place of a real one."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from mfmadsl.argument import clipped
from mfmadsl.cli.failure import fail
from mfmadsl.cli.kernel import ORDER, SEED, seed_of
from mfmadsl.cli.specs import ARCH, OUTPUT, PRODUCT, product_asked
from mfmadsl.cli.write import write_text
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.model import DEFAULT_ARCH, PRODUCTS
from mfmadsl.nearest import or_meant

INDEX, FAULTS = "index.html", "faults.sarif"
_OURS = re.compile(r"\d{3,}-\w*(-faults)?\.(html|s)")
"""What `report/program_pages.py` calls its files."""

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
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a page about each kernel that was launched into a folder, with an index.",
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
@ORDER
@SEED
@click.option("--log", is_flag=True, help="Tell of each launch, and why calls of HIP fail.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def device(
    arch: str | None,
    product: str | None,
    sanitize: bool,
    profile: Path | None,
    report: Path | None,
    budget: int | None,
    devices: int,
    order: str,
    seed: int | None,
    log: bool,
    command: tuple[str, ...],
) -> None:
    """Run a program that uses HIP: `mfmadsl device -- COMMAND...`.

    The program finds an emulated GPU behind libamdhip64.so. The exit code is the program's own; it
    is 1 where that would be 0 and a kernel was at fault.
    """
    _check_program(command[0].partition("=")[0])
    from mfmadsl.device import Options, run_program
    from mfmadsl.emulator.run import BUDGET
    from mfmadsl.report.program_pages import program_pages
    from mfmadsl.report.program_timeline import program_timeline_json

    product = product_asked(product, arch)
    if arch is None:
        arch = DEFAULT_ARCH if product is None else PRODUCTS[product].arch
    if report is not None:
        _check_folder(report)
    if profile is not None:
        _check_place(profile)
    options = Options(
        arch,
        product,
        sanitize,
        log,
        (profile or report) is not None,
        budget or BUDGET,
        devices,
        order,
        seed_of(order, seed),
    )
    try:
        ended = run_program(command, options)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    except MfmadslError as error:
        fail(str(error))
    if report is not None:
        _write_pages(report, program_pages(ended.launches, ended.calls, report))
    if profile is not None:
        write_text(profile, program_timeline_json(ended.launches, ended.product.launch))
    sys.exit(ended.exit_code or int(ended.faulty))


def _check_program(name: str) -> None:
    """Raise click.UsageError for an option that there is not, in the place of the program."""
    if not name.startswith("-"):
        return
    parameters = click.get_current_context().command.params
    known = [o for p in parameters for o in p.opts if o.startswith("--")]
    hint = "; the chip is `--arch`" if name == "--chip" else or_meant(name, known)
    raise click.UsageError(f"there is no option `{clipped(name)}`, but: {', '.join(known)}{hint}")


def _check_place(path: Path) -> None:
    """End the command where a file cannot be written, before the program has run."""
    try:
        there = path.exists()
        mode = os.W_OK if there else os.W_OK | os.X_OK
        reason = errno.EISDIR if path.is_dir() else 0
        if not there and not path.parent.is_dir():
            reason = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
        elif not reason and not os.access(path if there else path.parent, mode):
            reason = errno.EACCES
    except OSError as error:
        reason = error.errno or errno.EACCES
    if reason:
        fail(f"{path}: cannot be written: {os.strerror(reason)}")


def _check_folder(folder: Path) -> None:
    """End the command where a folder has what no report of ours is."""
    try:
        there = [path.name for path in folder.iterdir()] if folder.exists() else []
    except OSError as error:
        fail(f"{folder}: cannot be read: {error.strerror}")
    others = [name for name in there if name not in (INDEX, FAULTS) and not _OURS.fullmatch(name)]
    if others:
        fail(f"{folder}: has `{others[0]}`, which is of no report: name a new or an empty folder")


def _write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Write a report's files; those of a report that was there before go."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if _OURS.fullmatch(old.name) and old.name not in pages:
                old.unlink()
    except OSError as error:
        fail(f"{folder}: cannot be written: {error.strerror}")
    for name, text in pages.items():
        write_text(folder / name, text)
    click.echo(f"wrote {folder / INDEX}", err=True)
