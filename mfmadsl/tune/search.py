"""`tune`: the tilings that the formula ranks first are measured, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain
from typing import Any

import ml_dtypes  # noqa: F401  the types that NumPy lacks: bfloat16 and the eight-bit floats
import numpy as np
import tvm
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_extent
from mfmadsl.backend import Kernel, build
from mfmadsl.error import MfmadslError
from mfmadsl.model import DEFAULT_ARCH, Intrinsic
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule, gemm_tiling
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings, tuning_key
from mfmadsl.tune.database import Database
from mfmadsl.tune.measure import Measure, MeasureError, by_model

TRIALS = 20
"""Tilings that are measured, unless told otherwise."""

_SEED = 20240229


@dataclass(frozen=True)
class Trial:
    """A tiling that was measured, or why it could not be.

    `known` ones were in the database; of `refused` ones there is no kernel that could be measured.
    """

    tiling: Tiling
    seconds: float | None
    failure: str | None = None
    known: bool = False
    refused: bool = False

    @property
    def is_left(self) -> bool:
        """Whether it may yet be measured."""
        return self.seconds is None and not self.refused


def tune(
    workload: PrimFunc | tvm.IRModule,
    database: Database,
    arch: str = DEFAULT_ARCH,
    *,
    intrinsic: Intrinsic | str | None = None,
    trials: int = TRIALS,
    measure: Measure | None = None,
    at_once: int = 1,
    told: Callable[[Trial], None] | None = None,
) -> list[Trial]:
    """Measure the tilings of a product that should be the fastest; the fastest first.

    It is measured in the model of the chip, unless `measure` says otherwise.

    That of `gemm_tiling` is among them. Each is in the database once it is measured, and what is
    there already, of the same source, is not measured again, so that a run that was killed goes on
    where it was.
    `at_once` kernels are measured at the same time, by as many threads; `told` hears of each.

    Raises ScheduleError for a workload that is no product with known extents.
    """
    check_extent("trials", trials)
    check_extent("at_once", at_once)
    measure = measure or by_model(arch)
    known = database.measured(tuning_key(workload, arch), measure.source)
    default = gemm_tiling(workload, intrinsic, arch)
    ranked = dict.fromkeys([default, *gemm_tilings(workload, intrinsic, arch)])
    wanted = list(ranked)[:trials]
    todo = [tiling for tiling in wanted if tiling not in known]
    found = []
    for trial in chain(
        (Trial(tiling, known[tiling], known=True) for tiling in wanted if tiling in known),
        _measured(workload, arch, intrinsic, todo, measure, at_once),
    ):
        if trial.seconds is not None and not trial.known:
            database.add(workload, arch, trial.tiling, trial.seconds, measure.source)
        found.append(trial)
        if told is not None:
            told(trial)
    return sorted(found, key=lambda t: (t.seconds is None, t.seconds or 0.0))


def _measured(
    workload: PrimFunc | tvm.IRModule,
    arch: str,
    intrinsic: Intrinsic | str | None,
    tilings: Sequence[Tiling],
    measure: Measure,
    at_once: int,
) -> Iterator[Trial]:
    """Kernels are built here, one after another, while others are measured.

    None is built any more once there is nowhere to measure it.
    """
    nowhere: list[str] = []
    with ThreadPoolExecutor(at_once) as pool:
        running: dict[Future[float], Tiling] = {}
        for tiling in tilings:
            if nowhere:
                yield Trial(tiling, None, nowhere[0])
                continue
            try:
                kernel = build(gemm_schedule(workload, intrinsic, arch, tiling), arch)
            except MfmadslError as error:
                yield Trial(tiling, None, str(error), refused=True)
                continue
            running[pool.submit(measure.seconds, kernel, _arrays(kernel))] = tiling
            if len(running) >= at_once:
                yield from _ended(running, nowhere)
        while running:
            yield from _ended(running, nowhere)


def _ended(running: dict[Future[float], Tiling], nowhere: list[str]) -> Iterator[Trial]:
    """Those of which the measurement has come to an end; waits for one."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        tiling = running.pop(future)
        try:
            yield Trial(tiling, future.result())
        except MfmadslError as error:
            if isinstance(error, MeasureError):
                nowhere.append(str(error))
            yield Trial(tiling, None, str(error))


def _arrays(kernel: Kernel) -> list[Any]:
    """Random arguments: what switches costs power, and so time."""
    generator = np.random.default_rng(_SEED)
    arrays = []
    for argument in kernel.arguments:
        if not all(isinstance(extent, int) for extent in argument.shape):
            raise ScheduleError(
                f"workload: `{argument.name}` has an extent that is a symbol: tune it for a number"
            )
        values = generator.standard_normal(argument.shape, np.float32)
        arrays.append((values * 4).astype(numpy_type(argument.dtype)))
    return arrays
