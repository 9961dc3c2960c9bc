"""Tuned: MetaSchedule looks for better tiles than those that were chosen by hand.

The space is the vectorized schedule with its numbers left open, 2916 schedules; 64 of them are
drawn, built and run. What was found is kept beside this file, a trace of primitives: a search takes
minutes, and what it finds depends on how fast the machine was just then. So the ladder replays the
trace, and `--tune` searches anew.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from examples.cpu_matmul_exp import vectorized
from examples.cpu_matmul_exp.chain import Size, inputs, loops
from examples.cpu_matmul_exp.measure import answered
from examples.cpu_matmul_exp.step import compiled, this_cpu
from examples.cpu_matmul_exp.vectorized import Tile
from examples.metaschedule import drawn
from mfmadsl.output import check_output, write_file

TRACE = Path(__file__).with_name("tuned.json")
SEED = 16
BLOCKS = (64, 128, 256, 512)
TILES = (4, 8, 16), (16, 32, 64), (1, 2, 4)
"""Rows, columns and terms, for each of the products. Rows divide each of BLOCKS."""

RUNS = 4
"""Of each candidate, of which the fastest counts."""


class TuningError(Exception):
    """A trace that cannot be replayed, as a sentence."""


def schedule(sch: Schedule, path: Path = TRACE) -> None:
    """Replay the trace of a file on the plain loops, of whatever size.

    Raises TuningError for a file that cannot be read, and for a trace that these loops cannot have.
    """
    try:
        trace = json.loads(path.read_text())["trace"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TuningError(f"{path}: no trace can be read: {error}") from None
    try:
        Trace.apply_json_to_schedule(trace, sch)
    except Exception as error:  # TVM raises all sorts for what is no trace of these loops
        *_, reason = str(error).strip().splitlines() or ["no reason is given"]
        raise TuningError(f"{path}: the trace cannot be replayed: {reason}") from None


def space(sch: Schedule) -> None:
    """Draw the numbers of the vectorized schedule; the trace remembers what was drawn."""

    def draw(choices: tuple[int, ...]) -> Any:
        return sch.sample_categorical(list(choices), [1 / len(choices)] * len(choices))

    block, first, second = draw(BLOCKS), [*map(draw, TILES)], [*map(draw, TILES)]
    vectorized.schedule(sch, block, Tile(*first), Tile(*second))


def tuned_anew(size: Size, threads: int, trials: int, path: Path) -> float:
    """`tune` in a process that has so many threads. Raises MeasureError if that fails."""
    question = {"size": asdict(size), "threads": threads, "trials": trials, "path": str(path)}
    return float(answered("tuned", threads, question))


def tune(size: Size, threads: int, trials: int, path: Path, seed: int = SEED) -> float:
    """Search, and write the fastest that was found to a file; its seconds.

    Candidates are run in this process, each RUNS times; TVM_NUM_THREADS says on how many threads.
    Raises OutputError if the file cannot be written.
    """
    check_output(str(path))
    target = this_cpu(threads)
    given = [tvm.runtime.tensor(each) for each in inputs(size)]
    f = tvm.runtime.empty((size.m, size.p), "float32")

    def seconds(module: tvm.IRModule) -> float:
        code = compiled(module, target)
        taken = []
        for _ in range(RUNS):
            start = time.perf_counter()
            code(*given, f)
            taken.append(time.perf_counter() - start)
        return min(taken)

    records = drawn(loops(size).mod, space, seconds, trials, seed)
    fastest, trace = min(
        ((float(each.run_secs[0]), each.trace) for each in records), key=lambda each: each[0]
    )
    found = {
        "size": str(size), "trials": trials, "seed": seed, "seconds": fastest,
        "trace": plain(trace.as_json()),
    }  # fmt: skip
    write_file(path, (json.dumps(found) + "\n").encode())
    return fastest


def plain(value: Any) -> Any:
    """What TVM has of a trace, as JSON can have it."""
    if isinstance(value, tirx.IntImm):
        return int(value.value)
    if isinstance(value, tirx.FloatImm):
        return float(value.value)
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return [plain(each) for each in value]


def _main() -> int:
    asked = json.load(sys.stdin)
    path = Path(asked["path"])
    print(tune(Size(**asked["size"]), asked["threads"], asked["trials"], path))
    return 0


if __name__ == "__main__":
    from examples.process import exit_code

    sys.exit(exit_code(_main))
