"""The command: measure the ladder, print what was found, write a plot and JSON."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.cpu_matmul_exp import table, tuned
from examples.cpu_matmul_exp.chain import FULL, parsed_size
from examples.cpu_matmul_exp.ladder import ladder
from examples.cpu_matmul_exp.measure import Answer, MeasureError, Request, measured
from examples.cpu_matmul_exp.plot import svg
from examples.cpu_matmul_exp.tuned import tuned_anew
from examples.options import add_files, add_step, check_outputs
from examples.report import conclude, write_files
from mfmadsl.output import OutputError

CPUS = len(os.sched_getaffinity(0))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 if all numbers are right, 1 if one is wrong or a file cannot be written."""
    names = [step.name for step in ladder()]
    asked = _parser(names).parse_args(arguments)
    steps = tuple(name for name in names if not asked.step or name in asked.step)
    threads = tuple(dict.fromkeys(asked.threads or (1, CPUS)))
    try:
        check_outputs(asked.svg, asked.json, asked.trace)
        if asked.tune is not None:
            seconds = tuned_anew(asked.size, CPUS, asked.tune, asked.trace)
            print(f"trace       {asked.trace}: {seconds:.4f} s, the best of {asked.tune} trials\n")
        answers = []
        for count in threads:
            request = Request(asked.size, count, steps, str(asked.trace), asked.seconds)
            answers.append(measured(request))
            print(table.table(answers[-1], asked.size) + "\n", flush=True)
        return _report(answers, asked)
    except (MeasureError, OutputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _report(answers: Sequence[Answer], asked: argparse.Namespace) -> int:
    """Print and write what was found; the exit code."""
    print(table.LEGEND)
    notes = write_files(
        asked, lambda: svg(answers, asked.size), lambda: table.as_json(answers, asked.size)
    )
    timed = [(each, found) for found in answers for each in (*found.steps, found.numpy)]
    wrong = [
        f"{each.name}, threads: {found.threads}: {each.wrong or each.refused}"
        for each, found in timed
        if each.wrong or each.refused
    ]
    return conclude(notes, len(timed), "results agree with float64", wrong)


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="F = exp(A x B) x C on a CPU, from plain loops on, beside NumPy. All of it"
        " takes two minutes on two cores; --step and --threads take a part.",
    )
    parser.add_argument(
        "--size", type=parsed_size, default=FULL, metavar="MxKxNxP",
        help=f"A is M x K, B is K x N, C is N x P; {FULL}",
    )  # fmt: skip
    add_step(parser, names)
    parser.add_argument(
        "--threads", action="append", type=int, choices=range(1, CPUS + 1), metavar="N",
        help=f"instead of 1 and all of them, {CPUS}; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=_seconds, default=0.5, metavar="S",
        help="how long a step runs at a time, four times; 0.5",
    )  # fmt: skip
    parser.add_argument(
        "--tune", type=_trials, metavar="TRIALS",
        help="have MetaSchedule search anew, in so many trials (64 take minutes)",
    )  # fmt: skip
    parser.add_argument(
        "--trace", type=Path, default=tuned.TRACE, metavar="FILE",
        help="the trace that tuned replays, and that --tune writes; tuned.json beside the steps",
    )  # fmt: skip
    add_files(parser, "cpu_matmul_exp")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of seconds from 0 to 3600")
    return seconds


def _trials(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of trials from 1 to 10000")
    return int(text)
