"""The database: two files of TVM's MetaSchedule, of the workloads and of what was measured.

A record is a trace of two annotations on the product, the key and the tiling, and the seconds. The
files grow by lines; a process that is killed leaves at most half a line at the end, which the next
one takes away.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import tvm
from tvm import s_tir
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_path
from mfmadsl.backend.llvm import TRIPLE
from mfmadsl.output import OutputError, write_file
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule import ScheduleError, Tiling
from mfmadsl.schedule.gemm import tuning_key
from mfmadsl.schedule.prepare import prepared
from mfmadsl.schedule.sum_of_products import product_nest
from mfmadsl.schedule.tuned import (
    KEY,
    MODEL,
    RECORDS,
    SOURCE,
    TILING,
    WORKLOADS,
    Key,
    measured,
    written,
)
from mfmadsl.tune.extra import needs_extra


class Database:
    """A folder with both files; it is made if it is not there.

    Raises OutputError where that cannot be, and for files that hold something else; ArgumentError
    where what MetaSchedule needs is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        needs_extra()
        from tvm.s_tir.meta_schedule.database import JSONDatabase

        self.folder = check_path("folder", folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be made: {error.strerror}") from None
        paths = [self.folder / name for name in (WORKLOADS, RECORDS)]
        for path in paths:
            _mend(path)
        self._database = JSONDatabase(*map(str, paths), allow_missing=True)

    def add(
        self,
        workload: PrimFunc | tvm.IRModule,
        arch: str,
        tiling: Tiling,
        seconds: float,
        source: str = MODEL,
    ) -> None:
        """Keep what was measured, and on what; it is in the file when this returns."""
        from tvm.s_tir.meta_schedule.database import TuningRecord

        function = prepared(prim_func("workload", workload, ScheduleError))
        module = tvm.IRModule({"main": function})
        sch = s_tir.Schedule(module)
        block = sch.get_sblock(product_nest(function).name)
        sch.annotate(block, KEY, str(tuning_key(workload, arch)))
        sch.annotate(block, SOURCE, source)
        sch.annotate(block, TILING, written(tiling))
        stored = self._database.commit_workload(module)
        target = tvm.target.Target({"kind": "llvm", "mcpu": arch, "mtriple": TRIPLE})
        self._database.commit_tuning_record(
            TuningRecord(sch.trace, stored, [seconds], target, args_info=None)
        )

    def measured(self, key: Key, source: str = MODEL) -> dict[Tiling, float]:
        """The least seconds of each tiling that was measured for this very product on that."""
        path = self.folder / RECORDS
        if not path.exists():
            return {}
        state = path.stat()
        found: dict[Tiling, float] = {}
        for each in measured(path, state.st_mtime_ns, state.st_size):
            if (each.key, each.source) == (key, source):
                found[each.tiling] = min(each.seconds, found.get(each.tiling, each.seconds))
        return found


def _mend(path: Path) -> None:
    """Take away half a line at the end. Raises OutputError for a file with anything else in it."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), start=1):
        if not isinstance(_parsed(line), list):
            raise OutputError(
                f"{path}: line {number} is none of MetaSchedule's database: name another folder"
            )
    if whole != content:
        write_file(path, whole)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
