"""The command: measure the ladder, print what was found, write a plot and JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from examples.attention import table
from examples.attention.check import SMALL
from examples.attention.ladder import CHIPS, FULL, NAMES, ladder
from examples.attention.measure import Measured, measure
from examples.attention.plot import svg
from examples.attention.size import parsed_size
from examples.attention.step import Step
from examples.options import add_outputs, add_step, check_outputs
from examples.report import conclude, write_files
from mfmadsl import MfmadslError
from mfmadsl.output import OutputError


def main(arguments: Sequence[str] | None = None, steps: Sequence[Step] | None = None) -> int:
    """Exit code: 0 if all numbers are right, 1 if one is wrong or a file cannot be written.

    `steps` are those of all chips; without any, the ladders.
    """
    asked = _parser().parse_args(arguments)
    chips = tuple(dict.fromkeys(asked.arch or CHIPS))
    known = steps if steps is not None else [step for arch in CHIPS for step in ladder(arch)]
    chosen = [
        step for step in known
        if step.arch in chips and (not asked.step or step.name in asked.step)
    ]  # fmt: skip
    try:
        check_outputs(asked.svg, asked.json)
        measured = measure(chosen, asked.size, asked.jobs)
        return _report([[e for e in measured if e.step.arch == arch] for arch in chips], asked)
    except (MfmadslError, OutputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: the memory does not hold arrays of that size", file=sys.stderr)
        return 1


def _report(chips: Sequence[Sequence[Measured]], asked: argparse.Namespace) -> int:
    """Print and write what was found; the exit code."""
    chips = [measured for measured in chips if measured]
    for measured in chips:
        print(table.predicted(measured) + "\n")
    notes = write_files(asked, lambda: svg(chips), lambda: table.as_json(chips))
    every = [each for measured in chips for each in measured]
    wrong = [f"{each.step.name} on {each.step.arch}: {each.wrong}" for each in every if each.wrong]
    agreement = f"steps agree with NumPy in float64, in the emulator under the sanitizer ({SMALL})"
    return conclude(notes, len(every), agreement, wrong)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="Attention on matrix cores, from three kernels to the one that"
        " `attention_schedule` makes. All of it takes three minutes on two cores, a step (--step)"
        " half a minute at most.",
    )
    parser.add_argument(
        "--arch", action="append", choices=CHIPS, metavar="ARCH",
        help=f"only this chip; may be repeated. Of {', '.join(CHIPS)}",
    )  # fmt: skip
    add_step(parser, NAMES)
    parser.add_argument(
        "--size", type=lambda text: parsed_size(text, FULL), metavar="HEADSxQUERIESxKEYSxDEPTH",
        default=FULL, help=f"{FULL} if none is given",
    )  # fmt: skip
    add_outputs(parser, "attention")
    return parser
