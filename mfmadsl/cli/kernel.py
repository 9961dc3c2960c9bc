"""Commands that run a kernel's machine code: `emulate`, `sanitize`, `profile`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mfmadsl.cli.failure import fail, print_json
from mfmadsl.cli.progress import shown
from mfmadsl.cli.specs import ARCH, OUTPUT, PRODUCT, format_option, load_all, product_asked
from mfmadsl.cli.write import write_report, write_text
from mfmadsl.error import MfmadslError
from mfmadsl.model import Intrinsic
from mfmadsl.report.error import KernelFileError
from mfmadsl.report.formats import PROFILE
from mfmadsl.report.kernel_file import StoredKernel, read_kernel
from mfmadsl.report.run import caveats

if TYPE_CHECKING:
    from collections.abc import Iterator

Command = TypeVar("Command", bound=Callable[..., Any])


class _Extents(click.ParamType[tuple[int, ...]]):
    """One to three positive numbers, such as `4,4`."""

    name = "X[,Y[,Z]]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        try:
            extents = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            extents = ()
        if not 1 <= len(extents) <= 3 or min(extents) < 1:
            self.fail(f"{value!r} is not one to three positive numbers, such as 4,4", param, ctx)
        return extents


def _launch_options(command: Command) -> Command:
    options = [
        click.argument("kernel", type=click.Path(path_type=Path)),
        click.option("--symbol", help="Which kernel, where the file holds several."),
        click.option(
            "--arch",
            type=ARCH,
            help="The chip, where a bundle has code for several.",
        ),
        click.option("--grid", type=_Extents(), help="Extents in workgroups."),
        click.option("--block", type=_Extents(), help="Extents of a workgroup in threads."),
        click.option("--lds", type=click.IntRange(0), help="Bytes of LDS of a workgroup."),
        click.option(
            "--arg",
            "arguments",
            multiple=True,
            metavar="ARG",
            help="An argument, in order: FILE.npy, DTYPE[SHAPE] (random), DTYPE[SHAPE]=VALUE, "
            "DTYPE=VALUE (a number), null.",
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
REPORT = click.option(
    "--report", type=OUTPUT, metavar="FILE", help="Write a page about it, to look at."
)


def _read(
    kernel: Path,
    symbol: str | None,
    arch: str | None,
    grid: tuple[int, ...] | None,
    block: tuple[int, ...] | None,
    lds: int | None,
    arguments: tuple[str, ...],
) -> tuple[StoredKernel, list[Any]]:
    try:
        stored = read_kernel(kernel, symbol, grid, block, lds, arch)
        return stored, stored.arguments(arguments)
    except KernelFileError as error:
        fail(str(error))


def _budget(budget: int | None) -> dict[str, Any]:
    return {} if budget is None else {"budget": budget}


@click.command()
@_launch_options
@click.option(
    "--save",
    "saved",
    multiple=True,
    metavar="N=FILE.npy",
    help="Write an argument, counted from 0, as the kernel left it.",
)
@TRUST
def emulate(
    budget: int | None, saved: tuple[str, ...], specs: tuple[Path, ...], **options: Any
) -> None:
    """Run a kernel: assembly text in LLVM's syntax, a code object (.hsaco), or the JSON that
    `gemm --emit json` writes."""
    places = dict(_saves(saved))
    trusted = _trusted(specs)
    kernel, values = _read(**options)
    from mfmadsl.emulator import emulate as run_it

    try:
        with shown("emulating") as progress:
            run = run_it(kernel, values, progress=progress, trusted=trusted, **_budget(budget))
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


@click.command()
@_launch_options
@click.option("--keep-going", is_flag=True, help="Collect all faults, not only the first.")
@click.option(
    "--unwritten",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help="An argument, counted from 0, that holds nothing until the kernel writes it.",
)
@TRUST
@REPORT
@format_option(("text", "json"))
def sanitize(
    budget: int | None, keep_going: bool, unwritten: tuple[int, ...], specs: tuple[Path, ...],
    form: str, report: Path | None, **options: Any,
) -> None:  # fmt: skip
    """Run a kernel and look for what the chip does not define: races, missing waits, and more."""
    trusted = _trusted(specs)
    kernel, values = _read(**options)
    from mfmadsl.emulator import EmulationError
    from mfmadsl.emulator.sanitizer import sanitize as run_it

    if max(unwritten, default=0) >= max(1, len(values)):
        raise click.UsageError(f"--unwritten {max(unwritten)}: the kernel takes {len(values)}")
    waves, notes = 0, list[str]()
    try:
        with shown("sanitizing") as progress:
            found = run_it(
                kernel, values, keep_going=keep_going, unwritten=unwritten, trusted=trusted,
                progress=progress, **_budget(budget),
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
    if form == "json":
        print_json([fault_json(f, n) for f, n in zip(faults, counts, strict=True)])
    else:
        for fault, count in zip(faults, counts, strict=True):
            times = f" [{count} times]" if count > 1 else ""
            click.echo(f"error[{fault.kind}]: {fault}{times}", err=True)
        if not faults:
            click.echo("\n".join([f"{waves} waves, no faults", *notes]))
    if faults:
        sys.exit(1)


@click.command()
@_launch_options
@format_option(PROFILE)
@click.option(
    "--timeline",
    type=OUTPUT,
    metavar="FILE",
    help="Write what happens when, for ui.perfetto.dev.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Give the compute unit as many workgroups as it can hold, as a larger grid would.",
)
@click.option(
    "--launch",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Which launch, counted from 0, where the work takes several.",
)
@click.option(
    "--product",
    type=PRODUCT,
    help="The product that has the chip, of which the time is told.",
)
@REPORT
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="KERNEL",
    help="In the report, put this kernel beside it, with the same launch and arguments; JSON says "
    "its own.",
)
@click.option(
    "--against-arg",
    "others",
    multiple=True,
    metavar="ARG",
    help="An argument of that kernel, in order, where it takes others.",
)
def profile(
    budget: int | None, form: str, timeline: Path | None, full: bool, launch: int,
    product: str | None, report: Path | None, against: Path | None, others: tuple[str, ...],
    **options: Any,
) -> None:  # fmt: skip
    """Tell what a kernel executes, moves and waits for on one compute unit, and for how long on a
    whole chip."""
    if against is not None and report is None:
        raise click.UsageError("--against needs --report FILE: where are they put side by side?")
    if others and against is None:
        raise click.UsageError("--against-arg needs --against KERNEL: whose argument is it?")
    paths, kernels = [options["kernel"]], [_read(**options)]
    if against is not None:
        paths.append(against)
        kernels.append(_read(**_beside(against, options, others)))
    from mfmadsl.emulator.profiler import profile as run_it
    from mfmadsl.report.kernel_page import Profiled, profile_page
    from mfmadsl.report.timeline import timeline_json

    product = product or product_asked()
    profiled = []
    try:
        with shown("profiling") as progress:
            for path, (kernel, values) in zip(paths, kernels, strict=True):
                found = run_it(
                    kernel, values, full=full, launch=launch, product=product, progress=progress,
                    **_budget(budget),
                )  # fmt: skip
                start = kernel.launches(values)[launch]
                title = "" if against is None else str(path)
                facts = {**kernel.facts}
                if against is not None:
                    facts = {"kernel": found.symbol, **facts}
                profiled.append(
                    Profiled(found, start.assembly, start.grid, start.block, facts, title)
                )
    except MfmadslError as error:
        fail(str(error))
    first = profiled[0].profile
    if timeline is not None:
        write_text(timeline, timeline_json(first))
    if report is not None:
        write_report(report, profile_page(profiled))
    click.echo(PROFILE[form](first))


def _beside(other: Path, options: Mapping[str, Any], arguments: tuple[str, ...]) -> dict[str, Any]:
    """The options of the kernel that is put beside one: JSON says its own launch, and what it
    takes."""
    given = {**options, "kernel": other, "symbol": None}
    if other.suffix == ".json":
        given |= {"grid": None, "block": None, "lds": None, "arch": None}
        if options["kernel"].suffix != ".json":
            given["arguments"] = ()
    return given | ({"arguments": arguments} if arguments else {})
