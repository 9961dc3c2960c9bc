"""A database of tilings: written by MetaSchedule, read by the choice, mended after a kill."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import s_tir, te

import mfmadsl
from mfmadsl.backend import build
from mfmadsl.output import OutputError
from mfmadsl.schedule import ScheduleError, Tiling
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings, tuning_key
from mfmadsl.schedule.matrix_core.tiling.tuned import (
    FOLDER,
    KEY,
    RECORDS,
    SOURCE,
    TILING,
    WORKLOADS,
    bucket,
    read,
    read_key,
    written,
)
from mfmadsl.tune import Database, Trial, tune
from mfmadsl.tune.measure import Measure, by_model
from tests.cli.command import run

ARCH = "gfx942"


def product(m: int, n: int = 128, k: int = 256) -> Any:
    return mfmadsl.matmul(m, n, k, "float16", "float32", b_transposed=True)


def symbolic() -> Any:
    """The product with a number of rows that is known at run time only."""
    m = te.var("m")
    a = te.placeholder((m, 256), "float16", name="A")
    b = te.placeholder((128, 256), "float16", name="B")
    k = te.reduce_axis((0, 256), name="k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, k].astype("float32") * b[j, k].astype("float32"), axis=[k])

    return te.create_prim_func([a, b, te.compute((m, 128), element, name="C")])


def others(m: int = 64) -> list[Tiling]:
    """Tilings that are not the one that is chosen."""
    chosen = mfmadsl.gemm_tiling(product(m), arch=ARCH)
    return [tiling for tiling in gemm_tilings(product(m), arch=ARCH) if tiling != chosen]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """An empty one, which the choice is told of."""
    made = Database(tmp_path / "tuned")
    (tmp_path / "tuned" / RECORDS).touch()
    monkeypatch.setenv(FOLDER, str(made.folder))
    return made


@given(
    st.builds(
        Tiling,
        block=st.tuples(st.integers(1, 512), st.integers(1, 512)),
        k_step=st.sampled_from([16, 32, 64, 512]),
        waves=st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4])),
        instruction=st.sampled_from(["mfma_f32_32x32x8_f16", "mfma_i32_16x16x32_i8"]),
        k_pack=st.sampled_from([1, 2, 4, 8]),
        split_k=st.integers(1, 64),
        persistent=st.booleans(),
        swizzle=st.booleans(),
        overlap=st.sampled_from(["nothing", "loads", "fragments", "all"]),
    )
)
def test_what_is_written_is_read(tiling: Tiling) -> None:
    assert read(written(tiling)) == tiling


@given(st.text(max_size=60))
def test_what_is_no_tiling_is_none(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    "changed", ["swizzle=5", "block=16", "block=16x16x16", "k_step=3", "overlap=x", "other=1"]
)
def test_a_tiling_with_a_wrong_value_is_none(changed: str) -> None:
    words = written(others()[0]).split()
    name = changed.partition("=")[0]
    kept = [word for word in words if not word.startswith(f"{name}=")]
    assert read(" ".join([*kept, changed])) is None


@pytest.mark.parametrize(("m", "tuned_as"), [(1, 16), (16, 16), (17, 32), (100, 128), (128, 128)])
def test_rows_come_in_buckets(m: int, tuned_as: int) -> None:
    assert bucket(m) == tuned_as
    key = tuning_key(product(m), ARCH)
    assert str(key) == f"gfx942 1x{m}x128x256 float16 float16 float32 nn"
    assert read_key(str(key)) == key
    assert key.is_alike(tuning_key(product(tuned_as), ARCH))
    assert not key.is_alike(tuning_key(product(tuned_as + 1), ARCH))


def test_the_choice_takes_the_fastest_that_was_measured(database: Database) -> None:
    slow, fast, *_ = others()
    database.add(product(64), ARCH, slow, 2e-6)
    assert mfmadsl.gemm_tiling(product(64), arch=ARCH) == slow
    database.add(product(64), ARCH, fast, 1e-6)
    assert mfmadsl.gemm_tiling(product(64), arch=ARCH) == fast
    schedule = mfmadsl.gemm_schedule(product(50), arch=ARCH)  # of the same bucket
    chosen = mfmadsl.gemm_schedule(product(50), arch=ARCH, tiling=fast)
    assert schedule.mod.script() == chosen.mod.script()


def test_of_several_m_the_nearest_is_taken_however_fast_another_is(database: Database) -> None:
    """A smaller product takes less time, which says nothing of this one."""
    small, large, *_ = others()
    database.add(product(33), ARCH, small, 1e-6)
    database.add(product(64), ARCH, large, 9e-6)
    assert mfmadsl.gemm_tiling(product(60), arch=ARCH) == large
    assert mfmadsl.gemm_tiling(product(40), arch=ARCH) == small


def test_what_a_gpu_measured_goes_before_what_the_model_says(database: Database) -> None:
    slow, fast, *_ = others()
    database.add(product(64), ARCH, fast, 1e-6)
    database.add(product(64), ARCH, slow, 5e-6, "AMD Instinct MI300X")
    assert mfmadsl.gemm_tiling(product(64), arch=ARCH) == slow
    assert database.measured(tuning_key(product(64), ARCH)) == {fast: 1e-6}
    assert set(database.measured(tuning_key(product(64), ARCH), "AMD Instinct MI300X")) == {slow}


def test_other_products_and_chips_are_as_before(database: Database) -> None:
    asked = [(product(65), ARCH), (product(64, n=256), ARCH), (product(64), "gfx950")]
    asked.append((mfmadsl.matmul(64, 128, 256, "float16", "float32"), ARCH))
    asked.append((mfmadsl.matmul(64, 128, 256, "bfloat16", "float32", True), ARCH))
    asked.append((mfmadsl.Gemm(None, ARCH, 64, 128, 256, True, batch=2).workload(), ARCH))
    before = [mfmadsl.gemm_tiling(workload, arch=arch) for workload, arch in asked]
    database.add(product(64), ARCH, others()[0], 1e-6)
    assert [mfmadsl.gemm_tiling(workload, arch=arch) for workload, arch in asked] == before


def test_a_tiling_that_is_not_legal_is_passed_over(database: Database) -> None:
    before = mfmadsl.gemm_tiling(product(64), arch=ARCH)
    database.add(product(64), ARCH, replace(before, split_k=64), 1e-9)
    database.add(product(64), ARCH, replace(before, instruction="mfma_f32_4x4x4_f16"), 1e-9)
    assert mfmadsl.gemm_tiling(product(64), arch=ARCH) == before


def test_a_symbolic_m_takes_what_was_tuned_for_many_rows(database: Database) -> None:
    fast = others(256)[0]
    database.add(product(256), ARCH, fast, 1e-6)
    assert mfmadsl.gemm_tiling(symbolic(), arch=ARCH) == fast


def test_a_kernel_of_a_symbolic_m_is_taken_for_the_bucket_that_it_was_tuned_for(
    database: Database,
) -> None:
    slow = others(64)[-1]
    database.add(product(64), ARCH, slow, 1e-6)
    cases = mfmadsl.gemm_cases(symbolic(), arch=ARCH)
    borders = sorted((limit, n) for n, case in enumerate(cases) for limit in case.up_to)
    for extent in (33, 48, 64):
        taken = next((n for limit, n in borders if extent <= limit), len(cases) - 1)
        assert cases[taken].tiling == slow


def test_metaschedule_reads_it_and_its_traces_replay(database: Database) -> None:
    from tvm.s_tir.meta_schedule.database import JSONDatabase

    fast = others()[0]
    database.add(product(64), ARCH, fast, 3e-6)
    paths = [str(database.folder / name) for name in (WORKLOADS, RECORDS)]
    (record,) = JSONDatabase(*paths).get_all_tuning_records()
    module = tvm.IRModule({"main": product(64)})
    tvm.ir.assert_structural_equal(record.workload.mod, module)
    sch = s_tir.Schedule(module)
    record.trace.apply_to_schedule(sch, remove_postproc=False)
    told = sch.get(sch.get_sblock("C")).annotations
    assert read(str(told[TILING])) == fast
    assert str(told[KEY]) == str(tuning_key(product(64), ARCH))
    assert str(told[SOURCE]) == "model"
    assert [float(seconds) for seconds in record.run_secs] == [3e-6]


def test_after_a_kill_at_any_byte_it_goes_on(database: Database, tmp_path: Path) -> None:
    first, second, third, *_ = others()
    for tiling in (first, second):
        database.add(product(64), ARCH, tiling, 1e-6)
    whole = {name: (database.folder / name).read_bytes() for name in (WORKLOADS, RECORDS)}
    (line, _) = whole[RECORDS].splitlines(keepends=True)
    for number, cut in enumerate((0, 1, len(line) // 2, len(line) - 1, len(line))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / WORKLOADS).write_bytes(whole[WORKLOADS])
        (folder / RECORDS).write_bytes(line + whole[RECORDS][len(line) :][:cut])
        again = Database(folder)
        again.add(product(64), ARCH, third, 2e-6)
        found = again.measured(tuning_key(product(64), ARCH))
        complete = cut >= len(whole[RECORDS]) - len(line)
        assert set(found) == {first, third} | ({second} if complete else set())
        assert [json.loads(each) for each in (folder / RECORDS).read_text().splitlines()]


def test_a_file_of_somebody_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RECORDS).write_text("shopping: eggs\n")
    with pytest.raises(OutputError, match=r"records\.json: line 1 is none of MetaSchedule's"):
        Database(tmp_path)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(ScheduleError, match=r"records\.json: line 1 is none of MetaSchedule's"):
        mfmadsl.gemm_tiling(product(64), arch=ARCH)
    assert (tmp_path / RECORDS).read_text() == "shopping: eggs\n"


def test_a_folder_without_a_database_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, os.devnull)
    with pytest.raises(ScheduleError, match=r"MFMADSL_TUNED: .*name a folder that `mfmadsl tune`"):
        mfmadsl.gemm_tiling(product(64), arch=ARCH)


def test_a_search_measures_the_best_of_the_formula_and_the_default(database: Database) -> None:
    default = mfmadsl.gemm_tiling(product(64), arch=ARCH)
    heard: list[Trial] = []
    found = tune(product(64), database, ARCH, trials=3, told=heard.append)
    ranked = dict.fromkeys([default, *gemm_tilings(product(64), arch=ARCH)])
    assert {trial.tiling for trial in found} == set(list(ranked)[:3])
    assert [trial.seconds for trial in found] == sorted(trial.seconds or 0 for trial in heard)
    assert mfmadsl.gemm_tiling(product(64), arch=ARCH) == found[0].tiling


def test_what_is_known_is_not_measured_again(database: Database) -> None:
    def never(*_: Any) -> float:
        raise AssertionError("it is known")

    first = tune(product(64), database, ARCH, trials=2, measure=Measure("x", lambda *_: 1e-6))
    assert not any(trial.known for trial in first)
    again = tune(product(64), database, ARCH, trials=2, measure=Measure("x", never))
    assert all(trial.known for trial in again)
    assert {trial.tiling for trial in again} == {trial.tiling for trial in first}


def test_a_kernel_that_cannot_be_measured_is_told_and_not_kept(database: Database) -> None:
    def refused(*_: Any) -> float:
        raise mfmadsl.HipError("hipMalloc: hipErrorOutOfMemory")

    (trial,) = tune(product(64), database, ARCH, trials=1, measure=Measure("x", refused))
    assert (trial.seconds, trial.failure) == (None, "hipMalloc: hipErrorOutOfMemory")
    assert database.measured(tuning_key(product(64), ARCH)) == {}


def test_once_there_is_nowhere_to_measure_no_kernel_is_built(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([1e-6, 2e-6])

    def seconds(*_: Any) -> float:
        for answer in answers:
            return answer
        raise mfmadsl.MeasureError("no server is left")

    built: list[Any] = []

    def counted(schedule: Any, arch: str) -> Any:
        built.append(schedule)
        return build(schedule, arch)

    monkeypatch.setattr("mfmadsl.tune.search.build", counted)
    found = tune(product(64), database, ARCH, trials=6, measure=Measure("x", seconds))
    assert [trial.seconds for trial in found] == [1e-6, 2e-6, *[None] * 4]
    assert {trial.failure for trial in found[2:]} == {"no server is left"}
    assert all(trial.is_left for trial in found[2:])
    assert len(built) == 3


def test_a_tiling_of_which_no_kernel_can_be_built_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = iter([mfmadsl.LoweringError("too many registers")])

    def one_is_refused(schedule: Any, arch: str) -> Any:
        for error in built:
            raise error
        return build(schedule, arch)

    monkeypatch.setattr("mfmadsl.tune.search.build", one_is_refused)
    monkeypatch.setattr("mfmadsl.tune.by_model", lambda _: Measure("model", lambda *_: 1e-6))
    told = run(
        "tune", "--arch", ARCH, "-m", 64, "-n", 128, "-k", 256, "--trans-b", "--trials", 2,
        "--database", tmp_path, "--format", "json",
    )  # fmt: skip
    assert (told.exit_code, told.stderr) == (0, "")
    found = json.loads(told.stdout)
    assert [(each["seconds"], each["refused"]) for each in found] == [(1e-6, False), (None, True)]
    assert found[1]["failure"] == "too many registers"


def test_the_command_ends_with_1_where_a_tiling_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([1e-6])

    def seconds(*_: Any) -> float:
        for answer in answers:
            return answer
        raise mfmadsl.HipError("hipMalloc: hipErrorOutOfMemory")

    monkeypatch.setattr("mfmadsl.tune.by_model", lambda _: Measure("model", seconds))
    options = ("tune", "--arch", ARCH, "-m", 64, "-n", 128, "-k", 256, "--trans-b", "--trials", 3)
    told = run(*options, "--database", tmp_path / "text")
    assert told.exit_code == 1
    assert "best" in told.stdout
    assert "error: 2 of 3 tilings could not be measured: hipMalloc: hipErrorOut" in told.stderr
    answers = iter([1e-6])
    told = run(*options, "--database", tmp_path / "json", "--format", "json")
    assert told.exit_code == 1
    assert [each["refused"] for each in json.loads(told.stdout)] == [False] * 3
    answers = iter([1e-6, 2e-6, 3e-6])
    told = run(*options, "--database", tmp_path / "all")
    assert (told.exit_code, told.stderr) == (0, "")


def test_the_model_counts_all_launches_and_the_grid_of_the_chip() -> None:
    """Split K takes two launches, and what lies between them, which alone is five microseconds."""
    problem = mfmadsl.Gemm(None, ARCH, 64, 64, 512, tiling={"split_k": 2, "k_step": 64})
    kernel = problem.build()
    assert kernel.next is not None
    seconds = by_model().seconds
    assert seconds(kernel, problem.operands()) > 4.7e-6
    alone = mfmadsl.Gemm(None, ARCH, 64, 64, 512, tiling={"split_k": 1})
    assert seconds(alone.build(), alone.operands()) < 4.7e-6


def test_weights_of_few_bits_are_no_dense_ones_nor_each_others() -> None:
    """What was measured of one is not taken for another."""
    dense = (
        mfmadsl.matmul(1, 256, 512, "float16", "float32", b_transposed=b) for b in (False, True)
    )
    few = (
        mfmadsl.quantised_matmul(1, 256, 512, weights)
        for weights in ("q4f16", "gptq", "awq", "mxfp4", "int8")
    )
    keys = [tuning_key(each) for each in (*dense, *few)]
    assert len(set(keys)) == len(keys)
    assert all(read_key(str(key)) == key for key in keys)
