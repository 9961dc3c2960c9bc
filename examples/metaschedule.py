"""TVM's MetaSchedule as the ladders use it: it draws schedules of a space; we build and time them.

Building and running is in this process, so that a search takes no process of its own, and nothing
that these would need.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

derived_object = tvm.ir.utils.derived_object

FAILED = 1e9
"""Seconds: MetaSchedule records 1e10 for what could not be run."""


def drawn(
    workload: tvm.IRModule,
    space: Callable[[Schedule], None],
    seconds: Callable[[tvm.IRModule], float],
    trials: int,
    seed: int,
    refused: tuple[type[Exception], ...] = (),
) -> list[Any]:
    """So many records of schedules that `space` draws, the same for the same seed.

    `space` schedules the workload with what it samples. `seconds` says what a scheduled module
    takes, and raises one of `refused` where there is no code: such a record has FAILED or more.
    """
    with tempfile.TemporaryDirectory() as folder, _without_tensor_intrinsics():
        context = ms.TuneContext(
            workload,
            target=Target({"kind": "llvm"}),  # who times knows for which chip
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
            runner=_Timed(seconds, refused),
            database="memory",
            cost_model="random",  # replaying asks none
            measure_callbacks=[ms.measure_callback.AddToDatabase()],
            task_scheduler="round-robin",
        )
    return list(database.get_all_tuning_records())


@contextmanager
def _without_tensor_intrinsics() -> Iterator[None]:
    """Keep a TuneContext from parsing all TensorIntrins that come with TVM.

    It imports them whatever the space, which takes half a minute; the ladders' spaces have none.
    """
    name = "tvm.s_tir.tensor_intrin"
    with patch.dict(sys.modules, {} if name in sys.modules else {name: ModuleType(name)}):
        yield


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
class _Timed(ms.runner.PyRunner):  # type: ignore[misc]
    """A runner that asks a function for the seconds."""

    def __init__(
        self, seconds: Callable[[tvm.IRModule], float], refused: tuple[type[Exception], ...]
    ) -> None:
        super().__init__()
        self.seconds, self.refused = seconds, refused

    def run(self, runner_inputs: list[Any]) -> list[Any]:
        return [_Result(self._timed(Path(str(each.artifact_path)))) for each in runner_inputs]

    def _timed(self, path: Path) -> Any:
        module = tvm.ir.load_json(path.read_text())
        try:
            return ms.runner.RunnerResult([self.seconds(module)], None)
        except self.refused as error:
            return ms.runner.RunnerResult(None, str(error))


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
