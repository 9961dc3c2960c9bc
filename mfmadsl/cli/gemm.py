"""`mfmadsl gemm`: from types and extents to a kernel."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mfmadsl.cli.choice import Choice
from mfmadsl.cli.completion import instruction_names, steps, tiling_fields
from mfmadsl.cli.failure import fail
from mfmadsl.cli.gemm_options import (
    EXTENT,
    OUTPUTS,
    Dtype,
    Steps,
    gemm_of,
    product_options,
    tiling_changes,
    weight_options,
)
from mfmadsl.cli.progress import shown
from mfmadsl.cli.specs import OUTPUT, PRODUCT, SEARCH, SPEC, find, product_asked
from mfmadsl.cli.write import write_report
from mfmadsl.error import MfmadslError, SlowLoopWarning
from mfmadsl.report import kernel_json, kernel_summary
from mfmadsl.report.comparison import (
    bench_json,
    bench_lines,
    comparison_json,
    comparison_lines,
)
from mfmadsl.report.kernel import arguments_json
from mfmadsl.report.tiling import tiling_json, tiling_line

if TYPE_CHECKING:
    from mfmadsl.backend import Kernel
    from mfmadsl.comparison import Comparison
    from mfmadsl.gemm import Gemm
    from mfmadsl.hip.bench import Bench

_REPEAT = 100  # timed launches
_SUFFIXES = {"tir": ".tir.py", "llvm": ".ll", "asm": ".s", "hsaco": ".hsaco", "json": ".json"}
_OF_A_LAUNCH = ("llvm", "asm", "hsaco")


@click.command()
@product_options
@click.option(
    "--scales",
    "scaled",
    is_flag=True,
    help="A and B are in MX formats: each 32 elements along K have a scale. B lies as N x K.",
)
@click.option(
    "--block-scales",
    "blocks",
    is_flag=True,
    help="Each 128 elements of a row of A, and each 128 x 128 of B, have a scale in float32.",
)
@click.option(
    "--sparse",
    is_flag=True,
    help="A stores two of each four elements along K, and an index of their places.",
)
@weight_options
@click.option(
    "--experts",
    type=EXTENT,
    metavar="E",
    help="Rows are sorted by expert, and each of so many has a B of its own, as N x K.",
)
@click.option(
    "--tokens",
    type=EXTENT,
    metavar="N",
    help="A has so many rows, and an argument says of which one each of --experts is.",
)
@click.option(
    "--mx-output",
    type=Dtype(OUTPUTS),
    help="C is in an MX format, with scales of 32 along N: fp8, bf8 or fp4 elements.",
)
@click.option(
    "--epilogue",
    type=Steps(),
    shell_complete=steps,
    default=(),
    help="What follows the product, in order, such as bias,gelu; an unknown step lists all.",
)
@click.option(
    "--intrinsic",
    "name",
    metavar="NAME",
    shell_complete=instruction_names,
    help="Made of this instruction, see `mfmadsl list`; the fastest that fits by default.",
)
@SPEC
@SEARCH
@click.option(
    "--tiling",
    "tilings",
    multiple=True,
    shell_complete=tiling_fields,
    metavar="FIELD=VALUE",
    help="Change how the work is cut, such as block=128x64 or split_k=4; may be repeated.",
)
@click.option(
    "--emit",
    "kinds",
    type=Choice(list(_SUFFIXES)),
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
@click.option("--run", "ran", is_flag=True, help="Run it on the GPU here; compare to NumPy.")
@click.option(
    "--bench", "benched", is_flag=True, help="Run it on the GPU here, and time it if that agrees."
)
@click.option(
    "--report", type=OUTPUT, metavar="FILE", help="Write a page about its profile, to look at."
)
@click.option(
    "--product",
    "named",
    type=PRODUCT,
    help="The product that has the chip, of which --report tells the time.",
)
@click.option(
    "--trust-spec",
    is_flag=True,
    help="Emulate the instruction as the file of --spec says, not as the emulator knows it.",
)
def gemm(
    scaled: bool,
    blocks: bool,
    sparse: bool,
    weights: str | None,
    group: int | None,
    experts: int | None,
    tokens: int | None,
    mx_output: str | None,
    epilogue: tuple[str, ...],
    name: str | None,
    spec: Path | None,
    search: tuple[Path, ...],
    tilings: tuple[str, ...],
    kinds: tuple[str, ...],
    output: Path | None,
    emulated: bool,
    ran: bool,
    benched: bool,
    report: Path | None,
    trust_spec: bool,
    named: str | None,
    arch: str,
    **product: Any,
) -> None:
    """Schedule C = A x B and generate its kernel."""
    if output is not None and not kinds:
        raise click.UsageError("-o needs --emit: what is to be written?")
    if output is None and "hsaco" in kinds:
        raise click.UsageError("give -o FILE: a terminal can do nothing with bytes")
    if output is None and len(kinds) > 1:
        raise click.UsageError("give -o FILE: only one kind of text can go to the terminal")
    if spec is not None and name is None:
        raise click.UsageError("--spec needs --intrinsic: which one of the file?")
    if named is not None and report is None:
        raise click.UsageError("--product needs --report FILE: nothing else tells a time")
    of_product = product_asked(named, arch)
    if trust_spec and (spec is None or not emulated):
        raise click.UsageError("--trust-spec needs --spec and --emulate: who is trusted, in what?")
    forms = {"scaled": scaled, "blocks": blocks, "sparse": sparse}
    asked = [form for form, is_asked in forms.items() if is_asked]
    if len(asked) + (weights is not None) > 1:
        raise click.UsageError(
            "--scales, --block-scales, --sparse and --weights: no product has two of them"
        )
    if tokens is not None and experts is None:
        raise click.UsageError("--tokens needs --experts: whose rows are they?")
    changes = tiling_changes(tilings)
    intrinsic = None if name is None else find(name, spec, arch, search)
    (form,) = asked or ["plain"]
    problem = gemm_of(
        arch, **product, intrinsic=intrinsic, epilogue=epilogue, tiling=changes, form=form,
        weights=weights, group=group, mx_output=mx_output, experts=experts, tokens=tokens,
    )  # fmt: skip
    schedule, kernel = _built(problem)
    comparison = _checked(problem, kernel, trust_spec) if emulated else None
    bench = _run(problem, kernel, _REPEAT if benched else 0) if ran or benched else None
    if report is not None:
        write_report(report, _profiled(problem, kernel, comparison, of_product))
    results: dict[str, Any] = {
        "tiling": tiling_json(problem.tiled(), problem.tiling_source) if problem.is_tiled else None,
        "remarks": [remark for each in kernel.chain() for remark in each.remarks],
    }
    if problem.argument_values:
        results["arguments"] = arguments_json(kernel.arguments, problem.argument_values)
    if comparison is not None:
        results["emulation"] = comparison_json(comparison)
    if bench is not None:
        results["run"] = bench_json(bench)
    if kinds:
        _emit(kinds, output, str(schedule.mod.script()), kernel, results)
    else:
        click.echo(kernel_summary(kernel))
        for line in _ways(problem):
            click.echo(line)
    for remark in results["remarks"]:
        click.echo(f"remark     {remark}", err=bool(kinds))
    lines = [
        *(comparison_lines("emulated", comparison, problem) if comparison is not None else ()),
        *(bench_lines(bench, problem) if bench is not None else ()),
    ]
    for line in lines:
        click.echo(line, err=bool(kinds) and output is None)
    compared = [comparison, bench.comparison if bench is not None else None]
    if any(each is not None and not each.agrees for each in compared):
        sys.exit(1)


def _ways(problem: Gemm) -> list[str]:
    """Which instruction and tiling the kernel takes, and where they are from."""
    from mfmadsl.report.kernel_page import SOURCES

    if not problem.is_tiled:
        name = problem.intrinsic.name if problem.intrinsic is not None else ""
        return [f"tiling     that of the simple schedule, of {name}"]
    return [f"tiling     {tiling_line(problem.tiled())}: {SOURCES[problem.tiling_source]}"]


def _built(problem: Gemm) -> tuple[Any, Kernel]:
    from mfmadsl.backend import CodegenError, LinkError, LoweringError, build
    from mfmadsl.codegen import ModuleError
    from mfmadsl.schedule import ScheduleError

    try:
        schedule = problem.schedule()
        with warnings.catch_warnings():  # the remarks are told with the rest
            warnings.simplefilter("ignore", SlowLoopWarning)
            return schedule, build(schedule, problem.arch)
    except (ModuleError, ScheduleError, LoweringError, CodegenError, LinkError) as error:
        fail(str(error))


def _checked(problem: Gemm, kernel: Kernel, trust_spec: bool) -> Comparison:
    from mfmadsl.emulator import EmulationError

    try:
        with shown("emulating") as progress:
            return problem.check(kernel, progress, trust_spec)
    except (EmulationError, ValueError) as error:
        fail(str(error))


def _profiled(
    problem: Gemm, kernel: Kernel, comparison: Comparison | None, product: str | None
) -> str:
    from mfmadsl.emulator.profiler import profile
    from mfmadsl.report.kernel_page import Profiled, profile_page, tiling_facts

    args = list(problem.operands(compared=False))
    try:
        with shown("profiling") as progress:
            found = profile(kernel, args, product=product, progress=progress)
        start, *_ = kernel.launches(args)
        facts = {}
        if problem.is_tiled:
            facts = tiling_facts(tiling_json(problem.tiled(), problem.tiling_source))
        if kernel.remarks:
            facts["remark"] = "; ".join(kernel.remarks)
    except MfmadslError as error:
        fail(str(error))
    if comparison is not None:
        facts["emulated"] = comparison_lines("", comparison, problem)[0].strip()
    return profile_page([Profiled(found, start.assembly, start.grid, start.block, facts)])


def _run(problem: Gemm, kernel: Kernel, repeat: int) -> Bench:
    from mfmadsl.hip.bench import run_gemm

    try:
        return run_gemm(problem, kernel, repeat)
    except MfmadslError as error:
        fail(str(error))


def _emit(
    kinds: tuple[str, ...],
    output: Path | None,
    tir: str,
    kernel: Kernel,
    results: dict[str, Any],
) -> None:
    from mfmadsl.output import write_file

    launched = list(kernel.chain())
    if output is None:
        click.echo(_text(kinds[0], tir, kernel, results), nl=False)
        return
    if len(launched) > 1 and output.exists() and not output.is_file():
        fail(f"{output}: is no regular file, and {len(launched)} launches are several: give a name")
    base = output if len(kinds) > 1 else None
    paths = {
        (kind, place): _path(base, output, kind, place)
        for kind in kinds
        for place in (range(len(launched)) if kind in _OF_A_LAUNCH else (0,))
    }
    files = [
        [str(path) for (_, own), path in paths.items() if own == place]
        for place in range(len(launched))
    ]
    try:
        contents = {
            path: _content(kind, launched[place], tir, files, results)
            for (kind, place), path in paths.items()
        }
        for path, content in contents.items():
            write_file(path, content)
    except MfmadslError as error:
        fail(str(error))


def _content(
    kind: str, launch: Kernel, tir: str, files: list[list[str]], results: dict[str, Any]
) -> bytes:
    if kind == "hsaco":
        from mfmadsl.backend.gpu.linker import linked

        return linked(launch.code_object)
    if kind == "json":
        return _described(launch, files, results).encode()
    return {"tir": tir, "llvm": launch.llvm_ir, "asm": launch.assembly}[kind].encode()


def _path(base: Path | None, output: Path, kind: str, place: int) -> Path:
    """FILE or FILE.s; of the launches after the first FILE.1.s and so on."""
    number = f".{place}" if place else ""
    if base is not None:
        return base.with_name(f"{base.name}{number}{_SUFFIXES[kind]}")
    return output.with_name(f"{output.stem}{number}{output.suffix}")


def _text(kind: str, tir: str, kernel: Kernel, results: dict[str, Any]) -> str:
    """What goes to the terminal: of several launches one after the other."""
    if kind == "tir":
        return tir
    if kind == "json":
        return _described(kernel, [[] for _ in kernel.chain()], results)
    return "\n".join(each.assembly if kind == "asm" else each.llvm_ir for each in kernel.chain())


def _described(kernel: Kernel, files: list[list[str]], results: dict[str, Any]) -> str:
    return json.dumps({**kernel_json(kernel, files), **results}, indent=2) + "\n"
