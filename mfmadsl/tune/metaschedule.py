"""What was measured, as TVM's MetaSchedule asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mfmadsl.error import MfmadslError
from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.gemm import gemm_schedule
from mfmadsl.schedule.matrix_core.tiling.tuned import (
    KEY,
    SOURCE,
    TILING,
    Key,
    is_model,
    read,
    read_key,
)


def of_chip(records: Sequence[Any], arch: str) -> Any:
    """The fastest schedule of each workload that was measured for a chip, in a database in memory.

    A record's own trace names the tiling; the trace here is that of the schedule, whose
    TensorIntrins are registered. Records of others, and tilings that are not legal, are passed
    over.
    """
    from tvm.s_tir.meta_schedule.database import MemoryDatabase, TuningRecord

    made = MemoryDatabase()
    ours = [(*told, record) for record in records if (told := _told(record)) is not None]
    ours.sort(key=lambda each: (is_model(each[1]), _mean(each[3])))
    for key, _, tiling, record in ours:
        module = record.workload.mod
        if key.arch != arch or made.has_workload(module):
            continue
        try:
            trace = gemm_schedule(module, None, arch, tiling).trace
        except MfmadslError:
            continue
        stored = made.commit_workload(module)
        made.commit_tuning_record(TuningRecord(trace, stored, record.run_secs, record.target))
    return made


def _mean(record: Any) -> float:
    return sum(map(float, record.run_secs)) / len(record.run_secs)


def _told(record: Any) -> tuple[Key, str, Tiling] | None:
    """The key, the source and the tiling of a record of ours; None for any other."""
    told = {
        str(each.attrs[0]): str(each.inputs[1])
        for each in record.trace.insts
        if each.kind.name == "Annotate"
    }
    try:
        tiling = read(told[TILING])
        return (read_key(told[KEY]), told[SOURCE], tiling) if tiling and record.run_secs else None
    except (KeyError, ValueError):
        return None
