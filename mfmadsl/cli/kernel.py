"""`emulate` and `sanitize`, and what all commands on a kernel's machine code share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mfmadsl.cli.choice import Choice
from mfmadsl.cli.failure import fail, print_json
from mfmadsl.cli.progress import shown
from mfmadsl.cli.specs import ARCH, OUTPUT, format_option, load_all
from mfmadsl.cli.write import write_report
from mfmadsl.error import MfmadslError
from mfmadsl.model import Intrinsic
from mfmadsl.report.error import KernelFileError
from mfmadsl.report.kernel_file import StoredKernel, read_kernel
from mfmadsl.report.run import caveats

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mfmadsl.emulator.error import Fault

Command = TypeVar("Command", bound=Callable[..., Any])


class Extents(click.ParamType[tuple[int, ...]]):
    """One to three positive numbers, such as `4,4`."""

    name = "X[,Y[,Z]]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers with commas between them. Raises BadParameter if they are no extents."""
        try:
            extents = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            extents = ()
        if not 1 <= len(extents) <= 3 or min(extents) < 1:
            self.fail(f"{value!r} is not one to three positive numbers, such as 4,4", param, ctx)
        return extents


def launch_options(command: Command) -> Command:
    """The options that say which kernel runs, how, and on what; `read_launch` takes most."""
    options = [
        click.argument("kernel", type=click.Path(path_type=Path)),
        click.option("--symbol", help="Which kernel, where the file holds several."),
        click.option(
            "--arch",
            type=ARCH,
            help="The chip, where a bundle has code for several.",
        ),
        click.option("--grid", type=Extents(), help="Extents in workgroups."),
        click.option("--block", type=Extents(), help="Extents of a workgroup in threads."),
        click.option("--lds", type=click.IntRange(0), help="Bytes of LDS of a workgroup."),
        click.option(
            "--arg",
            "arguments",
            multiple=True,
            metavar="ARG",
            help="An argument, in order: FILE.npy, DTYPE[SHAPE] (random), DTYPE[SHAPE]=VALUE, or "
            "=VALUE,VALUE,..., or =FROM..TO (random), DTYPE=VALUE (a number), null.",
        ),
        click.option(
            "--budget",
            type=click.IntRange(1),
            help="Instructions that a wave may execute; ten million by default.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


TRUST = click.option(
    "--trust-spec",
    "specs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Take a .mfma file's word for what its instructions do; may be repeated.",
)
ORDER = click.option(
    "--order",
    type=Choice(("lockstep", "random")),
    default="lockstep",
    show_default=True,
    help="How waves take turns: as many as possible together, or at random.",
)
SEED = click.option("--seed", type=click.IntRange(0), help="Of a random order; 0 by default.")


def seed_of(order: str, seed: int | None) -> int:
    """The seed of an order. Raises click's UsageError for one that is none of a random order."""
    if seed is not None and order != "random":
        raise click.UsageError("--seed: is of a random order: say --order random, too")
    return seed or 0


REPORT = click.option(
    "--report", type=OUTPUT, metavar="FILE", help="Write a page about it, to look at."
)


def read_launch(
    kernel: Path,
    symbol: str | None,
    arch: str | None,
    grid: tuple[int, ...] | None,
    block: tuple[int, ...] | None,
    lds: int | None,
    arguments: tuple[str, ...],
) -> tuple[StoredKernel, list[Any]]:
    """The kernel that options describe, and its arguments."""
    try:
        stored = read_kernel(kernel, symbol, grid, block, lds, arch)
        return stored, stored.arguments(arguments)
    except KernelFileError as error:
        fail(str(error))


def budget_of(budget: int | None) -> dict[str, Any]:
    """The argument `budget` of an emulation, if an option sets it."""
    return {} if budget is None else {"budget": budget}


@click.command()
@launch_options
@click.option(
    "--save",
    "saved",
    multiple=True,
    metavar="N=FILE.npy",
    help="Write an argument, counted from 0, as the kernel left it.",
)
@ORDER
@SEED
@TRUST
def emulate(
    budget: int | None, saved: tuple[str, ...], specs: tuple[Path, ...], order: str,
    seed: int | None, **options: Any,
) -> None:  # fmt: skip
    """Run a kernel: assembly text in LLVM's syntax, a code object (.hsaco), or the JSON that
    `gemm --emit json` writes."""
    places = dict(_saves(saved))
    trusted = _trusted(specs)
    kernel, values = read_launch(**options)
    from mfmadsl.emulator import emulate as run_it

    try:
        with shown("emulating") as progress:
            run = run_it(
                kernel, values, progress=progress, trusted=trusted, order=order,
                seed=seed_of(order, seed), **budget_of(budget),
            )  # fmt: skip
    except MfmadslError as error:
        fail(str(error))
    for position, path in places.items():
        if position >= len(values):
            fail(f"there is no argument {position}: the kernel takes {len(values)}")
        _save(path, values[position])
    for line in [
        f"{run.waves} waves, {run.total} instructions",
        *caveats(run.approximate, run.trusted),
    ]:
        click.echo(line)


def _trusted(specs: tuple[Path, ...]) -> list[Intrinsic]:
    return [entry for entry in load_all(specs) if isinstance(entry, Intrinsic)]


def _saves(saved: tuple[str, ...]) -> Iterator[tuple[int, Path]]:
    for each in saved:
        position, equals, path = each.partition("=")
        if not equals or not re.fullmatch("[0-9]{1,9}", position):
            raise click.UsageError(f"--save {each!r} is not N=FILE.npy")
        yield int(position), OUTPUT.convert(path, None, None)


def _save(path: Path, value: Any) -> None:
    import io

    import numpy as np

    from mfmadsl.output import OutputError, write_file

    content = io.BytesIO()
    np.save(content, value)
    try:
        write_file(path, content.getvalue())
    except OutputError as error:
        fail(str(error))


def _as_sarif(path: Path, kernel: StoredKernel, faults: Sequence[Fault]) -> str:
    """Faults at the lines of the file, where it is the text that they are of."""
    from mfmadsl.report.sarif import Located, sarif_json

    content = path.read_bytes()
    is_text = any(content == start.assembly.encode() for start in kernel.starts)
    name, place = kernel.starts[0].symbol, path.as_posix()
    return sarif_json(Located(name, place, fault, is_text) for fault in faults)


@click.command()
@launch_options
@click.option("--keep-going", is_flag=True, help="Collect all faults, not only the first.")
@click.option(
    "--unwritten",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help="An argument, counted from 0, that holds nothing until the kernel writes it.",
)
@ORDER
@SEED
@TRUST
@REPORT
@format_option(("text", "json", "sarif"))
def sanitize(
    budget: int | None, keep_going: bool, unwritten: tuple[int, ...], specs: tuple[Path, ...],
    order: str, seed: int | None, form: str, report: Path | None, **options: Any,
) -> None:  # fmt: skip
    """Run a kernel and look for what the chip does not define: races, missing waits, and more."""
    trusted = _trusted(specs)
    kernel, values = read_launch(**options)
    from mfmadsl.emulator import EmulationError
    from mfmadsl.emulator.sanitizer import sanitize as run_it

    if max(unwritten, default=0) >= max(1, len(values)):
        raise click.UsageError(f"--unwritten {max(unwritten)}: the kernel takes {len(values)}")
    waves, notes = 0, list[str]()
    try:
        # What the kernel prints must not stand in what a program reads.
        aside = nullcontext() if form == "text" else redirect_stdout(sys.stderr)
        with shown("sanitizing") as progress, aside:
            found = run_it(
                kernel, values, keep_going=keep_going, unwritten=unwritten, trusted=trusted,
                progress=progress, order=order, seed=seed_of(order, seed), **budget_of(budget),
            )  # fmt: skip
        faults, counts, waves = found.faults, found.counts, found.run.waves
        notes = caveats((), found.run.trusted)
    except EmulationError as error:
        faults, counts = (error.fault,), (1,)
    except MfmadslError as error:
        fail(str(error))
    from mfmadsl.report.fault import fault_json

    if report is not None:
        from mfmadsl.report.kernel_page import faults_page

        texts = [start.assembly for start in kernel.starts]
        write_report(report, faults_page(kernel.starts[0].symbol, texts, faults, counts, waves))
    if form == "sarif":
        click.echo(_as_sarif(options["kernel"], kernel, faults), nl=False)
    elif form == "json":
        print_json([fault_json(f, n) for f, n in zip(faults, counts, strict=True)])
    else:
        for fault, count in zip(faults, counts, strict=True):
            times = f" [{count} times]" if count > 1 else ""
            click.echo(f"error[{fault.kind}]: {fault}{times}", err=True)
        if not faults:
            click.echo("\n".join([f"{waves} waves, no faults", *notes]))
    if faults:
        sys.exit(1)
