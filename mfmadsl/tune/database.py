"""The database: two files of TVM's MetaSchedule, of the workloads and of what was measured.

A record is a trace of three annotations on the product, the key, the tiling and on what it was
measured, and the seconds. The files grow by lines; a process that is killed leaves at most half a
line at the end, which the next one takes away. Who writes has the lock of the folder.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tvm
from tvm import s_tir
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_path
from mfmadsl.backend.gpu.llvm import TRIPLE
from mfmadsl.model import DEFAULT_ARCH, architecture
from mfmadsl.output import OutputError, write_file
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule import ScheduleError, Tiling
from mfmadsl.schedule.matrix_core.gemm import tuning_key
from mfmadsl.schedule.matrix_core.tiling.tuned import (
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
from mfmadsl.schedule.product.prepare import prepared
from mfmadsl.schedule.product.sum_of_products import product_nest
from mfmadsl.tune.extra import needs_extra

_LOCK = ".lock"


class Database:
    """A folder with both files; it is made if it is not there.

    Raises OutputError where that cannot be, and for files that hold something else; ArgumentError
    where what MetaSchedule needs is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        needs_extra()
        self.folder = check_path("folder", folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be made: {error.strerror}") from None
        self._read: tuple[object, ...] = ()
        with self._locked():
            self._mended()

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
        # As TVM calls what has no name of its own: it compares names, too.
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        sch = s_tir.Schedule(module)
        block = sch.get_sblock(product_nest(function).name)
        sch.annotate(block, KEY, str(tuning_key(workload, arch)))
        sch.annotate(block, SOURCE, source)
        sch.annotate(block, TILING, written(tiling))
        chip = architecture(arch).name
        target = tvm.target.Target({"kind": "llvm", "mcpu": chip, "mtriple": TRIPLE})
        with self._locked():
            database = self._mended()
            stored = database.commit_workload(module)
            database.commit_tuning_record(
                TuningRecord(sch.trace, stored, [seconds], target, args_info=None)
            )
            self._read = self._state()

    def metaschedule(self, arch: str = DEFAULT_ARCH) -> Any:
        """What was measured for a chip, as a database of TVM's MetaSchedule, in memory.

        `query_schedule` finds the fastest schedule of a module there, and
        `relax.transform.MetaScheduleApplyDatabase` takes it. Of the files themselves neither does:
        their traces name the tiling, which TVM knows nothing of, and they are of several chips,
        between which it makes no difference. What was measured on a GPU goes before the model.
        """
        from mfmadsl.tune.metaschedule import of_chip

        with self._locked():
            records = self._mended().get_all_tuning_records()
        return of_chip(records, architecture(arch).name)

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

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Within it no other process, and no other object, writes."""
        path = self.folder / _LOCK
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _mended(self) -> Any:
        """TVM's view of the files, which it reads once: made anew if another has written since."""
        from tvm.s_tir.meta_schedule.database import JSONDatabase

        if not self._read or self._read != self._state():
            workloads, records = self.folder / WORKLOADS, self.folder / RECORDS
            count = _mend(workloads)
            _mend(records)
            _check_indices(workloads, records, count)
            try:
                self._database = JSONDatabase(str(workloads), str(records), allow_missing=True)
            except Exception as error:  # of many kinds, for what is JSON and no workload
                raise OutputError(
                    f"{self.folder}: MetaSchedule cannot read its database "
                    f"({str(error).strip().splitlines()[-1]}): name another folder"
                ) from None
            self._read = self._state()
        return self._database

    def _state(self) -> tuple[object, ...]:
        """Other than before if a file has changed."""
        found = []
        for name in (WORKLOADS, RECORDS):
            path = self.folder / name
            there = path.stat() if path.exists() else None
            found.append(there and (there.st_ino, there.st_size, there.st_mtime_ns))
        return tuple(found)


def _check_indices(workloads: Path, records: Path, count: int) -> None:
    """Raise OutputError for a record of a workload that is not there."""
    if not records.exists():
        return
    for number, line in enumerate(records.read_bytes().splitlines(), start=1):
        index = _parsed(line)[:1]
        if not (index and isinstance(index[0], int) and 0 <= index[0] < count):
            raise OutputError(
                f"{records}: line {number} is of a workload that {workloads.name} does not have"
                f"{'' if workloads.exists() else ', which is not there'}: the two belong together: "
                "bring it back, or name another folder"
            )


def _mend(path: Path) -> int:
    """Take away half a line at the end; how many lines there are then.

    Raises OutputError for a file with anything else in it.
    """
    if not path.exists():
        return 0
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), start=1):
        if not isinstance(_parsed(line), list):
            raise OutputError(
                f"{path}: line {number} is none of MetaSchedule's database: name another folder"
            )
    if whole != content:
        write_file(path, whole)
    return whole.count(b"\n")


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
