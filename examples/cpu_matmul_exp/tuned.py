"""Tuned: MetaSchedule looks for a schedule of the naive loops by itself, in so many trials.

What it found is kept beside this file, a trace of primitives. A search takes minutes, and what it
finds depends on how fast the machine was just then; so the ladder replays the trace, and `--tune`
searches anew.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Trace
from tvm.target import Target

from examples.cpu_matmul_exp.chain import Size, loops
from examples.metaschedule import without_tensor_intrinsics
from mfmadsl.output import check_output, write_file

TRACE = Path(__file__).with_name("tuned.json")
SEED = 16
_AT_ONCE = 16
_SECONDS = 8
"""A candidate that takes longer, built or run, is given up: the naive loops take longer."""
_FAILED = 1e9
"""Seconds: MetaSchedule records 1e10 for what could not be run."""


class TuningError(Exception):
    """A trace that cannot be replayed, or a search that found none, as a sentence."""


def schedule(sch: Schedule, path: Path = TRACE) -> None:
    """Replay the trace of a file on the naive loops, of whatever size.

    Tiles that do not divide another size are taken by TVM as near as some that do. Raises
    TuningError for a file that cannot be read, and for a trace that these loops cannot have.
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


def tune(size: Size, target: Target, trials: int, path: Path, seed: int = SEED) -> float:
    """Search, and write the fastest that was found to a file; its seconds.

    The space is MetaSchedule's own for CPUs: tiles, vectors, threads, unrolling. Candidates evolve
    and run on this machine, on all threads. The target needs `num-cores`. Raises TuningError if
    none of them runs, and OutputError if the file cannot be written.
    """
    check_output(str(path))
    with tempfile.TemporaryDirectory() as folder, without_tensor_intrinsics(), _silent():
        database = ms.tune_tir(
            loops(size).mod,
            target,
            folder,
            trials,
            num_trials_per_iter=min(trials, _AT_ONCE),
            builder=ms.builder.LocalBuilder(timeout_sec=_SECONDS),
            runner=ms.runner.LocalRunner(
                timeout_sec=_SECONDS,
                evaluator_config=ms.runner.EvaluatorConfig(
                    number=1, repeat=2, min_repeat_ms=0, enable_cpu_cache_flush=False
                ),
            ),
            database="memory",
            cost_model="random",  # the others take packages that are larger than the gain
            space=ms.space_generator.PostOrderApply(
                sch_rules="llvm", postprocs="llvm", mutator_probs="llvm"
            ),
            seed=seed,
        )
    ran = [(float(each.run_secs[0]), each.trace) for each in database.get_all_tuning_records()]
    seconds, trace = min(ran, key=lambda each: each[0], default=(_FAILED, None))
    if trace is None or seconds >= _FAILED:
        raise TuningError(f"none of the {trials} trials for {size} could be run")
    found = {
        "size": str(size), "trials": trials, "seed": seed, "seconds": seconds,
        "trace": plain(trace.as_json()),
    }  # fmt: skip
    write_file(path, (json.dumps(found) + "\n").encode())
    return seconds


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


@contextmanager
def _silent() -> Iterator[None]:
    """MetaSchedule tells of each trial in a table; only what fails is of interest here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
