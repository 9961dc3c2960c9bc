"""MetaSchedule's own search on our targets: we build its candidates, and failures have reasons."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from mfmadsl.relax import tir_options

SEARCH = """
import sys
import types

# TVM's TensorIntrins for other makers' chips take half a minute to parse, and MetaSchedule imports
# them, whatever the target is.
sys.modules["tvm.s_tir.tensor_intrin"] = types.ModuleType("tvm.s_tir.tensor_intrin")

import mfmadsl
from mfmadsl.relax import tir_options
from tvm.s_tir import meta_schedule as ms

workload = mfmadsl.matmul(16, 16, 16, "float16", "float32", b_transposed=True)
config = ms.runner.EvaluatorConfig(1, 1, 0, False)
database = ms.tune_tir(
    workload, mfmadsl.target("gfx942"), sys.argv[1], max_trials_global=2, num_trials_per_iter=2,
    runner=ms.runner.LocalRunner(timeout_sec=120, evaluator_config=config),
    strategy="replay-trace", cost_model="random", num_tuning_cores=1, seed=3, **tir_options(),
)
records = database.get_all_tuning_records()
print("seconds", *(float(record.run_secs[0]) for record in records))
schedule = ms.tir_integration.compile_tir(database, workload, mfmadsl.target("gfx942"))
print("threads", mfmadsl.build(schedule.mod, "gfx942").block)
"""


@pytest.mark.thorough
def test_metaschedule_tunes_on_a_target_of_ours(tmp_path: Path) -> None:
    device = [sys.executable, "-m", "mfmadsl", "device", "--profile", "/dev/null", "--"]
    done = subprocess.run(
        [*device, sys.executable, "-c", SEARCH, str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (seconds,) = (line.split()[1:] for line in done.stdout.splitlines() if "seconds" in line)
    assert len(seconds) == 2
    assert all(0 < float(each) < 1e-3 for each in seconds)  # 1e10 stands for one that failed
    assert "threads (" in done.stdout


def test_what_is_not_built_or_run_is_told_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from tvm.s_tir.meta_schedule.builder import BuilderResult
    from tvm.s_tir.meta_schedule.runner import RunnerResult
    from tvm.s_tir.meta_schedule.task_scheduler import RoundRobin

    callback = tir_options()["measure_callbacks"][-1]
    built = [BuilderResult(None, "Traceback\nLinkError: no linker"), BuilderResult("path", None)]
    run = [RunnerResult(None, "LocalRunner: an exception\nHipError: no HIP")]
    with caplog.at_level(logging.WARNING):
        callback.apply(RoundRobin(), 0, [], built, run)
    assert caplog.messages == [
        "a candidate was not built: LinkError: no linker",
        "a candidate was not run: HipError: no HIP",
    ]
