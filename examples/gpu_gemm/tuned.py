"""Tuned: TVM's MetaSchedule looks for a better tile, and the profiler is its stop watch.

The space is the double-buffered schedule with each of its extents left open. The search draws them
at random, from a fixed seed; what it measures is the profiler's time, so it needs no GPU, and finds
the same again each time.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

from examples.gpu_gemm import double_buffer
from examples.gpu_gemm.large_tiles import TILE
from examples.gpu_gemm.predict import predict
from examples.gpu_gemm.step import plain, scheduled
from examples.gpu_gemm.tile import Tile
from examples.metaschedule import without_tensor_intrinsics
from examples.product import Size
from mfmadsl import MfmadslError

derived_object = tvm.ir.utils.derived_object

PARTS, THREADS, K_STEPS = (1, 2), (8, 16), (8, 16)
CHOICES = PARTS, PARTS, THREADS, THREADS, K_STEPS
SEED = 4
LEAST_K = 128
"""Tiles are ranked at an eighth of K, but at no less than this: turns are alike."""


@dataclass(frozen=True)
class Trial:
    """A tile, and its microseconds in the model; None if no kernel can be made of it."""

    tile: Tile
    microseconds: float | None


def trials_for(size: Size) -> int:
    """Fewer where the profiler takes longer: of a product of many workgroups."""
    return 8 if size.m * size.n <= 2**20 else 3


def tune(size: Size, arch: str, trials: int, seed: int = SEED) -> list[Trial]:
    """Draw so many tiles, and time each: the fastest first, those without a kernel last.

    The tile that was chosen by hand is timed as well, so that the first is never slower than it.
    """
    ranked = replace(size, k=min(size.k, max(LEAST_K, size.k // 8)))
    found = {trial.tile: trial for trial in _searched(ranked, arch, trials, seed)}
    if TILE not in found:
        by_hand = scheduled(lambda sch: double_buffer.schedule(sch, TILE), ranked)
        found[TILE] = Trial(TILE, predict(by_hand, ranked, arch).microseconds)
    return sorted(found.values(), key=lambda trial: trial.microseconds or float("inf"))


def schedule(size: Size, tile: Tile) -> Schedule:
    """The double-buffered schedule with a tile that was found."""
    return scheduled(lambda sch: double_buffer.schedule(sch, tile), size)


def space(sch: Schedule) -> None:
    """Draw a tile and schedule it; the trace remembers what was drawn."""

    def draw(choices: tuple[int, ...]) -> Any:
        return sch.sample_categorical(list(choices), [1 / len(choices)] * len(choices))

    rows, columns, thread_rows, thread_columns, k_step = map(draw, CHOICES)
    tile = Tile((thread_rows, thread_columns), TILE.elements, k_step, (rows, columns))
    double_buffer.schedule(sch, tile)


def _searched(size: Size, arch: str, trials: int, seed: int) -> list[Trial]:
    """Have MetaSchedule draw schedules of the space, build them and time them."""
    with tempfile.TemporaryDirectory() as folder, without_tensor_intrinsics():
        context = ms.TuneContext(
            plain(size).mod,
            target=Target({"kind": "llvm"}),  # the builder below knows the chip
            space_generator=ms.space_generator.ScheduleFn(
                space, sch_rules=[], postprocs=[], mutator_probs={}
            ),
            search_strategy="replay-trace",
            rand_state=seed,
            num_threads=1,
        )
        database = ms.tune.tune_tasks(
            tasks=[context],
            task_weights=[1.0],
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=trials,
            builder=_Saved(Path(folder)),
            runner=_Profiled(size, arch),
            database="memory",
            cost_model="random",  # replaying asks none
            measure_callbacks=[ms.measure_callback.AddToDatabase()],
            task_scheduler="round-robin",
        )
    return [_trial(record) for record in database.get_all_tuning_records()]


@derived_object
class _Saved(ms.builder.PyBuilder):  # type: ignore[misc]
    """A builder that leaves the building to the runner, and hands on the scheduled module."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def build(self, build_inputs: list[Any]) -> list[Any]:
        results = []
        for number, each in enumerate(build_inputs):
            path = self.folder / f"{number}.json"
            path.write_text(tvm.ir.save_json(each.mod))
            results.append(ms.builder.BuilderResult(str(path), None))
        return results


@derived_object
class _Profiled(ms.runner.PyRunner):  # type: ignore[misc]
    """A runner that runs nothing: the seconds are those of the profiler's model of a chip."""

    def __init__(self, size: Size, arch: str) -> None:
        super().__init__()
        self.size, self.arch = size, arch

    def run(self, runner_inputs: list[Any]) -> list[Any]:
        return [_Result(self._timed(Path(str(each.artifact_path)))) for each in runner_inputs]

    def _timed(self, path: Path) -> Any:
        sch = Schedule(tvm.ir.load_json(path.read_text()))
        try:
            seconds = predict(sch, self.size, self.arch).microseconds / 1e6
        except MfmadslError as error:  # too much shared memory, or a split that does not come out
            return ms.runner.RunnerResult(None, str(error))
        return ms.runner.RunnerResult([seconds], None)


@derived_object
class _Result(ms.runner.PyRunnerFuture):  # type: ignore[misc]
    """A result that is there already."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.known = result

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self.known


def _trial(record: Any) -> Trial:
    """What a record's trace has drawn. A failed run is recorded with a time that none takes."""
    drawn = [
        choices[int(record.trace.get_decision(instruction))]
        for instruction, choices in zip(
            (each for each in record.trace.insts if each.kind.name == "SampleCategorical"),
            CHOICES,
            strict=True,
        )
    ]
    rows, columns, thread_rows, thread_columns, k_step = drawn
    tile = Tile((thread_rows, thread_columns), TILE.elements, k_step, (rows, columns))
    seconds = float(record.run_secs[0])
    return Trial(tile, seconds * 1e6 if seconds < _FAILED else None)


_FAILED = 1e9
"""Seconds: MetaSchedule records 1e10 for what could not be run."""
