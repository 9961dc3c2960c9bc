"""The files of the database: two that write, a file that is gone, and what TVM finds in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tvm
from tvm import s_tir

import mfmadsl
from mfmadsl.output import OutputError
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings, tuning_key
from mfmadsl.schedule.matrix_core.tiling.tuned import RECORDS, WORKLOADS
from mfmadsl.tune import Database
from tests.cli.command import run

ARCH = "gfx942"
GEMM = ("tune", "--arch", ARCH, "-m", 64, "-n", 128, "-k", 256, "--trans-b")
WRITER = """
import sys
import mfmadsl
from mfmadsl.tune import Database

folder, n = sys.argv[1], int(sys.argv[2])
workload = mfmadsl.matmul(64, n, 64, "float16", "float32")
tiling = mfmadsl.gemm_tiling(workload, arch="gfx942")
database = Database(folder)
print("ready", flush=True)
sys.stdin.readline()
for seconds in range(1, 9):
    database.add(workload, "gfx942", tiling, seconds * 1e-6)
"""


def product(n: int = 128) -> Any:
    return mfmadsl.matmul(64, n, 64, "float16", "float32")


def columns_of_records(folder: Path) -> list[int]:
    """For each record the columns of B of the workload that it points at."""
    from tvm.s_tir.meta_schedule.database import JSONDatabase

    database = JSONDatabase(str(folder / WORKLOADS), str(folder / RECORDS))
    records = database.get_all_tuning_records()
    mains = [record.workload.mod["main"] for record in records]
    return [int(main.params[1].shape[1]) for main in mains]


def test_two_writers_of_a_fresh_database_keep_records_at_their_own_workloads(
    tmp_path: Path,
) -> None:
    first, second = Database(tmp_path), Database(tmp_path)
    for turn in (1, 2):
        for database, n in ((first, 128), (second, 256)):
            workload = product(n)
            tiling = mfmadsl.gemm_tiling(workload, arch=ARCH)
            database.add(workload, ARCH, tiling, turn * 1e-6)
    assert sorted(columns_of_records(tmp_path)) == [128, 128, 256, 256]
    assert len((tmp_path / WORKLOADS).read_text().splitlines()) == 2


@pytest.mark.thorough
def test_two_processes_write_at_the_same_time(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(n)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in (128, 256)
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sorted(columns_of_records(tmp_path)) == [128] * 8 + [256] * 8
    assert [json.loads(line) for line in (tmp_path / RECORDS).read_text().splitlines()]


@pytest.mark.parametrize("kept", [None, b""], ids=["no file", "an empty file"])
def test_records_without_their_workloads_are_told(tmp_path: Path, kept: bytes | None) -> None:
    Database(tmp_path).add(product(), ARCH, mfmadsl.gemm_tiling(product(), arch=ARCH), 1e-6)
    (tmp_path / WORKLOADS).unlink()
    if kept is not None:
        (tmp_path / WORKLOADS).write_bytes(kept)
    before = (tmp_path / RECORDS).read_bytes()
    with pytest.raises(OutputError, match=r"records\.json: line 1 is of a workload that workloads"):
        Database(tmp_path)
    result = run(*GEMM, "--database", tmp_path)
    assert result.exit_code == 1
    assert "the two belong together: bring it back, or name another folder" in result.stderr
    assert (tmp_path / RECORDS).read_bytes() == before


def test_what_metaschedule_cannot_read_is_told(tmp_path: Path) -> None:
    (tmp_path / WORKLOADS).write_text('["eggs", "milk"]\n')
    with pytest.raises(OutputError, match=r"MetaSchedule cannot read its database \(.*name anoth"):
        Database(tmp_path)


def test_of_a_tiling_that_was_measured_several_times_the_least_counts(tmp_path: Path) -> None:
    """On each source by itself."""
    database, tiling = Database(tmp_path), mfmadsl.gemm_tiling(product(), arch=ARCH)
    for seconds, source in ((2e-6, "model"), (1e-6, "model"), (3e-6, "model"), (4e-6, "a GPU")):
        database.add(product(), ARCH, tiling, seconds, source)
    key = tuning_key(product(), ARCH)
    assert database.measured(key, "model") == {tiling: 1e-6}
    assert database.measured(key, "a GPU") == {tiling: 4e-6}
    assert database.measured(tuning_key(product(256), ARCH), "model") == {}


def test_metaschedule_finds_the_fastest_schedule_of_each_chip(tmp_path: Path) -> None:
    database, module = Database(tmp_path), tvm.IRModule({"main": product()})
    first = mfmadsl.gemm_tiling(product(), arch=ARCH)
    other = next(each for each in gemm_tilings(product(), arch=ARCH) if each.block != first.block)
    database.add(product(), ARCH, first, 2e-6)
    database.add(product(), ARCH, other, 1e-6)
    for_950 = mfmadsl.gemm_tiling(product(), arch="gfx950")
    database.add(product(), "gfx950", for_950, 1e-9)
    for arch, tiling in ((ARCH, other), ("gfx950", for_950)):
        found = database.metaschedule(arch).query_schedule(module, mfmadsl.target(arch), "main")
        assert isinstance(found, s_tir.Schedule)
        expected = mfmadsl.gemm_schedule(product(), arch=arch, tiling=tiling)
        tvm.ir.assert_structural_equal(found.mod, expected.mod)
    assert len(database.metaschedule("gfx90a")) == 0
    database.add(product(), ARCH, first, 9e-6, "AMD Instinct MI300X")  # goes before the model
    found = database.metaschedule(ARCH).query_schedule(module, mfmadsl.target(ARCH), "main")
    expected = mfmadsl.gemm_schedule(product(), arch=ARCH, tiling=first)
    tvm.ir.assert_structural_equal(found.mod, expected.mod)


def test_what_the_command_tunes_is_found_by_another_name(tmp_path: Path) -> None:
    """TVM compares names of functions, too; that of the command names its extents."""
    problem = mfmadsl.Gemm(None, ARCH, 64, 128, 64)
    workload = problem.workload()
    assert workload.attrs["global_symbol"] != "main"
    database = Database(tmp_path)
    database.add(workload, ARCH, mfmadsl.gemm_tiling(workload, arch=ARCH), 1e-6)
    module = tvm.IRModule({"main": product()})
    assert database.metaschedule(ARCH).query_schedule(module, mfmadsl.target(ARCH), "main")


def test_relax_takes_what_was_tuned(tmp_path: Path) -> None:
    from tvm import relax

    database = Database(tmp_path)
    database.add(product(), ARCH, mfmadsl.gemm_tiling(product(), arch=ARCH), 1e-6)
    module = tvm.IRModule({"main": product()})
    with mfmadsl.target(ARCH), database.metaschedule(ARCH):
        applied = relax.transform.MetaScheduleApplyDatabase()(module)
    assert applied["main"].attrs["tirx.is_scheduled"]
    kernel = mfmadsl.build(applied, arch=ARCH)
    assert "v_mfma_f32" in kernel.assembly
