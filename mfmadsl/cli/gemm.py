"""`mfmadsl gemm`: from an intrinsic to a kernel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mfmadsl.cli.failure import fail
from mfmadsl.cli.specs import ARCH, OUTPUT, find
from mfmadsl.report import kernel_json, kernel_summary

if TYPE_CHECKING:
    from mfmadsl.gemm import Comparison, Gemm
    from mfmadsl.target import Kernel

_SUFFIXES = {"tir": ".tir.py", "llvm": ".ll", "asm": ".s", "hsaco": ".hsaco", "json": ".json"}


@click.command()
@click.option("--intrinsic", "name", required=True, metavar="NAME", help="See `mfmadsl list`.")
@click.option("--spec", type=click.Path(path_type=Path), help="Take NAME from this .mfma file.")
@click.option("--arch", type=ARCH, required=True)
@click.option("-m", type=click.IntRange(1), required=True)
@click.option("-n", type=click.IntRange(1), required=True)
@click.option("-k", type=click.IntRange(1), required=True)
@click.option("--trans-b", is_flag=True, help="B lies as N x K.")
@click.option(
    "--emit",
    "kinds",
    type=click.Choice(list(_SUFFIXES)),
    multiple=True,
    help="What to print or write; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="FILE",
    help="Where to write it; with several --emit, a suffix is added for each.",
)
@click.option("--emulate", "emulated", is_flag=True, help="Run the machine code; compare to NumPy.")
def gemm(
    name: str,
    spec: Path | None,
    arch: str,
    m: int,
    n: int,
    k: int,
    trans_b: bool,
    kinds: tuple[str, ...],
    output: Path | None,
    emulated: bool,
) -> None:
    """Schedule C = A x B with one intrinsic and generate its kernel."""
    if output is not None and not kinds:
        raise click.UsageError("-o needs --emit: what is to be written?")
    if output is None and (len(kinds) > 1 or "hsaco" in kinds):
        raise click.UsageError("give -o FILE: only one kind of text can go to the terminal")
    intrinsic = find(name, spec, arch)
    from mfmadsl.gemm import Gemm

    problem = Gemm(intrinsic, arch, m, n, k, trans_b)
    schedule, kernel = _built(problem)
    comparison = problem.check(kernel) if emulated else None
    if kinds:
        _emit(kinds, output, str(schedule.mod.script()), kernel, comparison)
    else:
        click.echo(kernel_summary(kernel))
    if comparison is not None:
        _report(comparison, problem, to_stderr=bool(kinds) and output is None)
        if not comparison.agrees:
            sys.exit(1)


def _built(problem: Gemm) -> tuple[Any, Kernel]:
    from mfmadsl.codegen import ModuleError
    from mfmadsl.target import CodegenError, LinkError, LoweringError, build
    from mfmadsl.tensorize import ScheduleError

    try:
        schedule = problem.schedule()
        return schedule, build(schedule, problem.arch)
    except (ModuleError, ScheduleError, LoweringError, CodegenError, LinkError) as error:
        fail(str(error))


def _emit(
    kinds: tuple[str, ...],
    output: Path | None,
    tir: str,
    kernel: Kernel,
    comparison: Comparison | None,
) -> None:
    from mfmadsl.output import OutputError, write_file

    if "hsaco" in kinds and kernel.code_object is None:
        fail("no linker found for a code object: install lld, or `pip install ziglang`")
    paths = {
        kind: (output.with_name(output.name + _SUFFIXES[kind]) if len(kinds) > 1 else output)
        for kind in kinds
        if output is not None
    }
    description = kernel_json(kernel, [str(path) for path in paths.values()])
    if comparison is not None:
        description["emulation"] = {
            "largest_error": comparison.error,
            "tolerance": comparison.tolerance,
            "agrees": comparison.agrees,
        }
    contents = {
        "tir": tir.encode(),
        "llvm": kernel.llvm_ir.encode(),
        "asm": kernel.assembly.encode(),
        "hsaco": kernel.code_object or b"",
        "json": (json.dumps(description, indent=2) + "\n").encode(),
    }
    if not paths:
        click.echo(contents[kinds[0]].decode(), nl=False)
        return
    try:
        for kind, path in paths.items():
            write_file(path, contents[kind])
    except OutputError as error:
        fail(str(error))


def _report(comparison: Comparison, problem: Gemm, to_stderr: bool) -> None:
    rule = problem.tolerance_rule
    verdict = "agrees with" if comparison.agrees else "DIFFERS from"
    click.echo(
        f"emulated   {verdict} NumPy in float64: largest error {comparison.error:.3g} "
        f"at C[{comparison.row}, {comparison.column}], "
        f"tolerance {comparison.tolerance:.3g} ({rule})",
        err=to_stderr,
    )
