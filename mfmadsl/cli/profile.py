"""`mfmadsl profile`: what a kernel waits for, and another one beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mfmadsl.cli.failure import fail
from mfmadsl.cli.kernel import (
    REPORT,
    Command,
    Extents,
    budget_of,
    launch_options,
    read_launch,
)
from mfmadsl.cli.progress import shown
from mfmadsl.cli.specs import OUTPUT, PRODUCT, format_option, product_asked
from mfmadsl.cli.write import write_report, write_text
from mfmadsl.error import MfmadslError
from mfmadsl.report.error import KernelFileError
from mfmadsl.report.formats import PROFILE
from mfmadsl.report.kernel_file import StoredKernel, is_described, read_kernel

_OTHERS = ("arg", "symbol", "grid", "block", "lds")
"""Options of which the kernel that is put beside one has its own, `--against-` before the name."""

_NAMED = re.compile(rf"--({'|'.join(_OTHERS)})\b")


def _other_options(command: Command) -> Command:
    """What is said of the kernel that is put beside one; it has the rest in common with that."""
    options = [
        click.option(
            "--against",
            type=click.Path(path_type=Path),
            metavar="KERNEL",
            help="In the report, put this kernel beside it, with the same launch and arguments if "
            "no others are given; JSON says its own.",
        ),
        click.option(
            "--against-arg",
            multiple=True,
            metavar="ARG",
            help="An argument of that kernel, in order, where it takes others.",
        ),
        click.option("--against-symbol", help="Which kernel, where that file holds several."),
        click.option("--against-grid", type=Extents(), help="Its extents in workgroups."),
        click.option("--against-block", type=Extents(), help="Those of its workgroups in threads."),
        click.option(
            "--against-lds", type=click.IntRange(0), help="Bytes of LDS of its workgroups."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@launch_options
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
@click.option(
    "--warm",
    is_flag=True,
    help="Have the caches hold what another launch with the same arguments has left there.",
)
@REPORT
@_other_options
def profile(
    budget: int | None, form: str, timeline: Path | None, full: bool, launch: int,
    product: str | None, warm: bool, report: Path | None, against: Path | None, **options: Any,
) -> None:  # fmt: skip
    """Tell what a kernel executes, moves and waits for on one compute unit, and for how long on a
    whole chip."""
    if against is not None and report is None:
        raise click.UsageError("--against needs --report FILE: where are they put side by side?")
    others = {name: options.pop(f"against_{name}") for name in _OTHERS}
    if against is None and (given := [n for n, value in others.items() if value not in (None, ())]):
        raise click.UsageError(f"--against-{given[0]} needs --against KERNEL: whose is it?")
    paths, kernels = [options["kernel"]], [read_launch(**options)]
    if against is not None:
        paths.append(against)
        kernels.append(_beside(against, kernels[0][0], options, others))
    from mfmadsl.emulator.profiler import profile as run_it
    from mfmadsl.report.kernel_page import Profiled, profile_page
    from mfmadsl.report.timeline import timeline_json

    product = product_asked(product, options["arch"])
    profiled = []
    try:
        with shown("profiling") as progress:
            for path, (kernel, values) in zip(paths, kernels, strict=True):
                found = run_it(
                    kernel, values, full=full, launch=launch, product=product, warm=warm,
                    progress=progress, **budget_of(budget),
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
        fail(_of_other(against, error) if against is not None and profiled else str(error))
    first = profiled[0].profile
    if timeline is not None:
        write_text(timeline, timeline_json(first))
    if report is not None:
        write_report(report, profile_page(profiled))
    click.echo(PROFILE[form](first))


def _beside(
    path: Path, first: StoredKernel, options: Mapping[str, Any], others: Mapping[str, Any]
) -> tuple[StoredKernel, list[Any]]:
    """The kernel that is put beside the first one, as far as `others` say, and else launched as
    that is; JSON says its own launch, and what it takes where the first one does not."""
    given = {**others, "arch": None}
    texts = given.pop("arg")
    try:
        described = is_described(path)
        if not described or first.described is not None:
            texts = texts or options["arguments"]
        if not described:
            texts = texts or first.argument_texts
            given["arch"] = options["arch"]
            for name in ("grid", "block", "lds"):
                given[name] = options[name] if given[name] is None else given[name]
        kernel = read_kernel(path, lds_bytes=given.pop("lds"), **given)
        return kernel, kernel.arguments(texts)
    except KernelFileError as error:
        fail(_of_other(None, error))


def _of_other(path: Path | None, error: MfmadslError) -> str:
    """What is wrong with the kernel that is put beside one, by the options that are its own."""
    told = _NAMED.sub(r"--against-\1", str(error))
    return told if path is None else f"{path}: {told}"
