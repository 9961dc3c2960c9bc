"""`mfmadsl gemm`: from types and extents to a kernel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mfmadsl.cli.failure import fail
from mfmadsl.cli.gemm_options import DTYPES, EXTENT, SUM_DTYPES, Steps, tiling_changes
from mfmadsl.cli.progress import shown
from mfmadsl.cli.specs import ARCH, OUTPUT, SEARCH, find
from mfmadsl.report import kernel_json, kernel_summary
from mfmadsl.report.run import caveats

if TYPE_CHECKING:
    from mfmadsl.backend import Kernel
    from mfmadsl.comparison import Comparison
    from mfmadsl.gemm import Gemm

_SUFFIXES = {"tir": ".tir.py", "llvm": ".ll", "asm": ".s", "hsaco": ".hsaco", "json": ".json"}
_OF_A_LAUNCH = ("llvm", "asm", "hsaco")


@click.command()
@click.option("--arch", type=ARCH, required=True)
@click.option("-m", type=EXTENT, required=True)
@click.option("-n", type=EXTENT, required=True)
@click.option("-k", type=EXTENT, required=True)
@click.option("--batch", type=EXTENT, metavar="N", help="So many products, of matrices each.")
@click.option("--trans-a", is_flag=True, help="A lies as K x M.")
@click.option("--trans-b", is_flag=True, help="B lies as N x K.")
@click.option("--in-dtype", type=click.Choice(DTYPES), help="Of A and B; float16 by default.")
@click.option("--b-dtype", type=click.Choice(DTYPES), help="Of B, if it is another.")
@click.option("--out-dtype", type=click.Choice(SUM_DTYPES), help="Of C; that of the sums, if not.")
@click.option(
    "--epilogue",
    type=Steps(),
    default=(),
    help="What follows the product, in order, such as bias,gelu; an unknown step lists all.",
)
@click.option(
    "--intrinsic",
    "name",
    metavar="NAME",
    help="Made of this instruction, see `mfmadsl list`; the fastest that fits by default.",
)
@click.option("--spec", type=click.Path(path_type=Path), help="Take NAME from this .mfma file.")
@SEARCH
@click.option(
    "--tiling",
    "tilings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Change how the work is cut, such as block=128x64 or split_k=4; may be repeated.",
)
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
@click.option(
    "--trust-spec",
    is_flag=True,
    help="Emulate the instruction as the file of --spec says, not as the emulator knows it.",
)
def gemm(
    arch: str,
    m: int,
    n: int,
    k: int,
    batch: int | None,
    trans_a: bool,
    trans_b: bool,
    in_dtype: str | None,
    b_dtype: str | None,
    out_dtype: str | None,
    epilogue: tuple[str, ...],
    name: str | None,
    spec: Path | None,
    search: tuple[Path, ...],
    tilings: tuple[str, ...],
    kinds: tuple[str, ...],
    output: Path | None,
    emulated: bool,
    trust_spec: bool,
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
    if trust_spec and (spec is None or not emulated):
        raise click.UsageError("--trust-spec needs --spec and --emulate: who is trusted, in what?")
    changes = tiling_changes(tilings)
    intrinsic = None if name is None else find(name, spec, arch, search)
    from mfmadsl.gemm import Gemm

    problem = Gemm(
        intrinsic, arch, m, n, k, trans_b, None, trans_a, (in_dtype, b_dtype, out_dtype), batch,
        epilogue, changes,
    )  # fmt: skip
    schedule, kernel = _built(problem)
    comparison = _checked(problem, kernel, trust_spec) if emulated else None
    if kinds:
        _emit(kinds, output, str(schedule.mod.script()), kernel, comparison)
    else:
        click.echo(kernel_summary(kernel))
    if comparison is not None:
        _report(comparison, problem, to_stderr=bool(kinds) and output is None)
        if not comparison.agrees:
            sys.exit(1)


def _built(problem: Gemm) -> tuple[Any, Kernel]:
    from mfmadsl.backend import CodegenError, LinkError, LoweringError, build
    from mfmadsl.codegen import ModuleError
    from mfmadsl.schedule import ScheduleError

    try:
        schedule = problem.schedule()
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


def _emit(
    kinds: tuple[str, ...],
    output: Path | None,
    tir: str,
    kernel: Kernel,
    comparison: Comparison | None,
) -> None:
    from mfmadsl.output import OutputError, write_file

    launched = list(kernel.chain())
    if "hsaco" in kinds and any(each.code_object is None for each in launched):
        fail("no linker found for a code object: install lld, or `pip install ziglang`")
    if output is None:
        click.echo(_text(kinds[0], tir, kernel, comparison), nl=False)
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
        for (kind, place), path in paths.items():
            write_file(path, _content(kind, launched[place], tir, files, comparison))
    except OutputError as error:
        fail(str(error))


def _content(
    kind: str, launch: Kernel, tir: str, files: list[list[str]], comparison: Comparison | None
) -> bytes:
    if kind == "hsaco":
        return launch.code_object or b""
    if kind == "json":
        return _described(launch, files, comparison).encode()
    return {"tir": tir, "llvm": launch.llvm_ir, "asm": launch.assembly}[kind].encode()


def _path(base: Path | None, output: Path, kind: str, place: int) -> Path:
    """FILE or FILE.s; of the launches after the first FILE.1.s and so on."""
    number = f".{place}" if place else ""
    if base is not None:
        return base.with_name(f"{base.name}{number}{_SUFFIXES[kind]}")
    return output.with_name(f"{output.stem}{number}{output.suffix}")


def _text(kind: str, tir: str, kernel: Kernel, comparison: Comparison | None) -> str:
    """What goes to the terminal: of several launches one after the other."""
    if kind == "tir":
        return tir
    if kind == "json":
        return _described(kernel, [[] for _ in kernel.chain()], comparison)
    return "\n".join(each.assembly if kind == "asm" else each.llvm_ir for each in kernel.chain())


def _described(kernel: Kernel, files: list[list[str]], comparison: Comparison | None) -> str:
    description = kernel_json(kernel, files)
    if comparison is not None:
        description["emulation"] = {
            "largest_error": comparison.error,
            "tolerance": comparison.tolerance,
            "agrees": comparison.agrees,
            "approximate": list(comparison.approximate),
            "trusted": list(comparison.trusted),
        }
    return json.dumps(description, indent=2) + "\n"


def _report(comparison: Comparison, problem: Gemm, to_stderr: bool) -> None:
    rule = problem.tolerance_rule
    verdict = "agrees with" if comparison.agrees else "DIFFERS from"
    click.echo(
        f"emulated   {verdict} NumPy in float64: largest error {comparison.error:.3g} "
        f"at C{comparison.place}, tolerance {comparison.tolerance:.3g} ({rule})",
        err=to_stderr,
    )
    for line in caveats(comparison.approximate, comparison.trusted):
        click.echo(f"           {line}", err=to_stderr)
