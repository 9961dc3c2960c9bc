"""The command: measure the ladder, print what was found, write a plot and JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from examples.mfma_gemm import sequence, table
from examples.mfma_gemm.check import SMALL
from examples.mfma_gemm.ladder import CHIPS, FULL, NAMES, ladder
from examples.mfma_gemm.measure import Measured, measure
from examples.mfma_gemm.plot import svg
from examples.mfma_gemm.step import Step
from examples.options import add_outputs, add_step, check_outputs
from examples.product import Size, parsed_size
from examples.report import conclude, write_files
from mfmadsl import MfmadslError
from mfmadsl.output import OutputError


def main(arguments: Sequence[str] | None = None, steps: Sequence[Step] | None = None) -> int:
    """Exit code: 0 if all numbers are right, 1 if one is wrong or a file cannot be written.

    `steps` are those of all chips; without any, the ladders.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    chips = tuple(dict.fromkeys(asked.arch or CHIPS))
    known = steps if steps is not None else [step for arch in CHIPS for step in ladder(arch)]
    found = [step for step in known if step.arch in chips]
    wanted = [asked.asm] if asked.asm else asked.step or []
    for name in wanted:
        if not any(step.name == name for step in found):
            parser.error(f"there is no step {name} on {' or '.join(chips)}")
    if asked.full and not asked.asm:
        parser.error("--full needs --asm")
    sizes = FULL if asked.size is None else dict.fromkeys(chips, asked.size)
    try:
        if asked.asm:
            print("\n\n".join(_listings(found, asked.asm, sizes, asked.full)))
            return 0
        check_outputs(asked.svg, asked.json)
        chosen = [step for step in found if not wanted or step.name in wanted]
        measured = measure(chosen, sizes, asked.jobs)
        return _report([[e for e in measured if e.step.arch == arch] for arch in chips], asked)
    except (MfmadslError, OutputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: the memory does not hold matrices of that size", file=sys.stderr)
        return 1


def _report(chips: Sequence[Sequence[Measured]], asked: argparse.Namespace) -> int:
    """Print and write what was found; the exit code."""
    chips = [measured for measured in chips if measured]
    for measured in chips:
        print(table.predicted(measured) + "\n")
    notes = write_files(asked, lambda: svg(chips), lambda: table.as_json(chips))
    every = [each for measured in chips for each in measured]
    wrong = [f"{each.step.name} on {each.step.arch}: {each.wrong}" for each in every if each.wrong]
    agreement = f"steps agree with NumPy, bit by bit, in the emulator under the sanitizer ({SMALL})"
    return conclude(notes, len(every), agreement, wrong)


def _listings(steps: Sequence[Step], name: str, sizes: Mapping[str, Size], full: bool) -> list[str]:
    """For each chip the main loop of the step before, and beside it that of the step."""
    listings = []
    for number, step in enumerate(steps):
        if step.name == name:
            before = steps[number - 1] if number else None
            same = before is not None and before.arch == step.arch
            listings.append(listing(before if same else None, step, sizes[step.arch], full))
    return listings


def listing(before: Step | None, step: Step, size: Size, full: bool = False) -> str:
    """The main loops of two steps side by side; of the first step of a ladder, its own."""
    title = f"; {step.name} of {size} on {step.arch}: an iteration of the main loop"
    after = _loop(step, size, full)
    if before is None:
        return "\n".join([title, *after])
    titles = f"before: {before.name}", f"after: {step.name}"
    return "\n".join([title, *sequence.side_by_side(_loop(before, size, full), after, titles)])


def _loop(step: Step, size: Size, full: bool) -> list[str]:
    body = sequence.main_loop(step.kernel(size).assembly)
    return [instruction.text for instruction in body] if full else sequence.short(body)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="A product of matrices on matrix cores, from one instruction to full speed. All"
        " of it takes a minute and a half on two cores, a step (--step) some seconds.",
    )
    parser.add_argument(
        "--arch", action="append", choices=CHIPS, metavar="ARCH",
        help=f"only this chip; may be repeated. Of {', '.join(CHIPS)}",
    )  # fmt: skip
    add_step(parser, NAMES)
    parser.add_argument(
        "--size", type=_size, metavar="MxNxK",
        help=", ".join(f"{size} on {arch}" for arch, size in FULL.items()) + " if none is given",
    )  # fmt: skip
    parser.add_argument(
        "--asm", choices=NAMES, metavar="STEP",
        help="print the main loop before and after a step, and no more",
    )  # fmt: skip
    parser.add_argument(
        "--full", action="store_true", help="with --asm: every instruction, as it is"
    )
    add_outputs(parser, "mfma_gemm")
    return parser


def _size(text: str) -> Size:
    """M x N x K, any: the steps have code for the edges of a matrix."""
    size = parsed_size(text, FULL[CHIPS[0]])
    if not size.multiply_adds:
        raise argparse.ArgumentTypeError(f"`{text}` is no size such as {FULL[CHIPS[0]]}")
    return size
