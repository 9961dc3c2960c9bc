"""TVM's MetaSchedule, its own search, on our targets: how to build what it finds."""

from __future__ import annotations

import logging
from typing import Any

import tvm
from tvm.target import Target

from mfmadsl.relax.lowering import PIPELINE
from mfmadsl.tune.extra import needs_extra

_LOGGER = logging.getLogger(__name__)
_SECONDS = 120.0  # of a build, in which a process imports TVM and us


def tir_options() -> dict[str, Any]:
    """Arguments for MetaSchedule's `tune_tir`: how to build for a target of `mfmadsl.target`.

    `ms.tune_tir(module, mfmadsl.target(arch), folder, 64, **tir_options())` lowers and emits what
    MetaSchedule finds as `tir_pipeline="mfmadsl"` does, and logs a warning with the reason for each
    candidate that was not built or not run. Where it runs, `runner` says; it needs a GPU.

    Raises ArgumentError where what MetaSchedule needs is not installed.
    """
    needs_extra()
    from tvm.ir.utils import derived_object  # type: ignore[import-untyped]
    from tvm.s_tir.meta_schedule.builder import LocalBuilder
    from tvm.s_tir.meta_schedule.measure_callback import MeasureCallback, PyMeasureCallback

    @derived_object
    class Reasons(PyMeasureCallback):  # type: ignore[misc]
        def apply(
            self, task_scheduler: Any, task_id: int, measure_candidates: Any,
            builder_results: Any, runner_results: Any,
        ) -> None:  # fmt: skip
            for kind, results in (("built", builder_results), ("run", runner_results)):
                for each in results or ():
                    if each.error_msg:
                        _LOGGER.warning("a candidate was not %s: %s", kind, _reason(each.error_msg))

    return {
        "builder": LocalBuilder(f_build=built, timeout_sec=_SECONDS),
        "measure_callbacks": [*MeasureCallback.create("default"), Reasons()],
    }


def _reason(message: str) -> str:
    """The last line of what is a traceback, mostly."""
    return (message.strip().splitlines() or ["no reason is given"])[-1]


def built(module: tvm.IRModule, target: Target, _: Any) -> tvm.runtime.Module:
    """A candidate as a module of TVM's runtime; called in processes that MetaSchedule starts."""
    return tvm.tirx.build(module, target, pipeline=PIPELINE)
