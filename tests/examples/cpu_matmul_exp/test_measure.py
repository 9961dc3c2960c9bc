"""The process that measures: its environment, its turns, what it answers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import tvm

from examples.cpu_matmul_exp import ladder, measure
from examples.cpu_matmul_exp.chain import Size, loops
from examples.cpu_matmul_exp.measure import (
    MeasureError,
    Request,
    Timed,
    answer,
    environment,
    measured,
)
from examples.cpu_matmul_exp.step import Step, scheduled
from examples.cpu_matmul_exp.tuned import TRACE

SMALL = Size(40, 33, 34, 35)
REQUEST = Request(SMALL, 1, ("naive", "vectorized"), str(TRACE), 0.01)


def test_openblas_chooses_its_kernel_and_no_thread_waits_actively() -> None:
    given = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "65536", "HOME": "/home/me"}
    made = environment(3, given | {"OMP_WAIT_POLICY": "active", "PYTHONPATH": "/elsewhere"})
    assert "OPENBLAS_CORETYPE" not in made
    assert "OPENBLAS_L2_SIZE" not in made
    assert made["OMP_WAIT_POLICY"] == "passive"
    assert made["HOME"] == "/home/me"
    assert made["OPENBLAS_NUM_THREADS"] == made["TVM_NUM_THREADS"] == made["OMP_NUM_THREADS"] == "3"
    assert made["PYTHONPATH"].split(os.pathsep) == [str(measure.ROOT), "/elsewhere"]
    assert environment(1, {})["PYTHONPATH"] == str(measure.ROOT)


@pytest.mark.thorough
def test_a_process_of_its_own_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel for this CPU, though the environment names the oldest one."""
    own = measured(REQUEST)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    found = measured(REQUEST)
    assert found.blas == own.blas
    assert "kernel " in found.blas
    assert "1 threads" in found.blas
    assert found.threads == 1
    assert [each.name for each in found.steps] == ["naive", "vectorized"]
    for each in (*found.steps, found.numpy):
        assert each.wrong is None
        assert each.error is not None
        assert 0 < each.error < 1
        assert len(each.runs) > 1
        assert min(each.runs) <= each.seconds <= max(each.runs)


def other(size: Size) -> tvm.IRModule:
    """The chain with exp(P / 2) instead of exp(P)."""
    script = loops(size).mod.script().replace("T.exp(P[", "T.exp(T.float32(0.5) * P[")
    assert "0.5" in script
    module: tvm.IRModule = tvm.script.from_source(script)
    return module


def test_a_wrong_step_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (Step("right", "", scheduled(lambda sch: None)), Step("wrong", "", other))
    monkeypatch.setattr(ladder, "ladder", lambda trace: steps)
    found = answer(Request(SMALL, 1, ("right", "wrong"), "", 0.001))
    right, wrong = found.steps
    assert right.wrong is None
    assert wrong.wrong is not None
    assert "elements are wrong, the first of them F[0, 0] = " in wrong.wrong
    assert wrong.error is not None
    assert wrong.error > 1


def test_a_trace_that_is_none_refuses_its_step_only(tmp_path: Path) -> None:
    found = answer(Request(SMALL, 1, ("naive", "tuned"), str(tmp_path / "none.json"), 0.001))
    naive, tuned = found.steps
    assert naive.refused is None
    assert tuned.runs == ()
    assert tuned.refused is not None
    assert "no trace can be read" in tuned.refused


def test_what_takes_longer_than_its_turn_runs_once() -> None:
    found = answer(Request(SMALL, 1, ("naive",), "", 0.0))
    assert [len(each.runs) for each in found.steps] == [1]


def test_the_median_is_of_all_runs() -> None:
    assert Timed("a", (3.0, 1.0, 2.0, 9.0), 0.1, None).seconds == 2.5


def test_a_process_that_fails_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(MeasureError, match="the process `measure` with 1 threads ended with 1"):
        measured(REQUEST)
