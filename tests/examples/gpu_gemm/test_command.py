"""The command: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tvm import te
from tvm.s_tir import Schedule

from examples.gpu_gemm import coalesced, command, plot
from examples.gpu_gemm.command import main
from examples.gpu_gemm.cuda import CudaError
from examples.gpu_gemm.ladder import LADDER
from examples.gpu_gemm.step import Step
from examples.product import Size
from tests.examples.commands import check_needs_matplotlib, check_unwritable, check_wrong_call

RUN = Path(__file__).parents[3] / "examples" / "gpu_gemm" / "run.py"
SHORT = ["--size", "128x128x32", "--jobs", "1"]


def shifted(size: Size, arch: str) -> Schedule:
    """A schedule of another product: each column of B is taken for the one before it."""
    a = te.placeholder((size.m, size.k), name="A", dtype="float32")
    b = te.placeholder((size.k, size.n), name="B", dtype="float32")
    k = te.reduce_axis((0, size.k), name="k")
    c = te.compute(
        (size.m, size.n), lambda i, j: te.sum(a[i, k] * b[k, (j + 1) % size.n], axis=[k]), name="C"
    )
    sch = Schedule(te.create_prim_func([a, b, c]))
    coalesced.schedule(sch)
    return sch


WRONG = Step("shifted", "a column off", matrix=shifted)
RIGHT = next(step for step in LADDER if step.name == "coalesced")


@pytest.mark.thorough
def test_two_steps_from_a_folder_of_ones_own(tmp_path: Path) -> None:
    """In a process of its own, as people call it, by two processes of its own."""
    asked = [
        "--step",
        "coalesced",
        "--step",
        "gemm",
        "--size",
        "256x128x64",
        "--size",
        "128x128x32",
    ]
    done = subprocess.run(
        [sys.executable, str(RUN), *asked, "--json", "found.json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (
        "256x128x64 (M x N x K), in the model of an MI300X (gfx942, 304 compute units)"
        in done.stdout
    )
    assert "the same schedules for CUDA, sm_90" in done.stdout
    assert "2 of 2 steps agree with NumPy" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert [step["name"] for step in found["steps"]] == ["coalesced", "gemm"]
    for step in found["steps"]:
        assert step["right"] is True
        assert [at["prediction"]["size"]["k"] for at in step["sizes"]] == [64, 32]
        for at in step["sizes"]:
            size, predicted = at["prediction"]["size"], at["prediction"]
            cycles = predicted["microseconds"] * 2100 * 304
            assert predicted["rate"] == pytest.approx(size["m"] * size["n"] * size["k"] / cycles)
    assert found["steps"][0]["cuda"]["block"] == [16, 16, 1]
    assert found["steps"][1]["cuda"] is None
    assert (tmp_path / "gpu_gemm.svg").read_bytes().startswith(b"<?xml")


def test_a_wrong_schedule_is_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(SHORT, [RIGHT, WRONG]) == 1
    said = capsys.readouterr()
    assert "1 of 2 steps agree with NumPy" in said.out
    assert "error: shifted of 128x128x64: " in said.err
    assert "elements are wrong, the first of them C[0, 0] = " in said.err


def test_the_same_plot_each_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        assert main([*SHORT, "--svg", str(tmp_path / name)], [RIGHT]) == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "<text" in (tmp_path / "one.svg").read_text()


def test_the_main_loop_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--asm", "thread_tiles", "--size", "128x128x64"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "; thread_tiles of 128x128x64 on gfx942: the main loop"
    assert any(line.startswith("v_pk_fma_f32") for line in said)
    assert not any(line.startswith("s_endpgm") for line in said)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--size", "100x128x32"], "M and N have to be multiples of 128, and K of 32"),
        (["--size", "128x128x0"], "multiples"),
        (["--size", "large"], "`large` is no size such as 1024x512x2048"),
        (["--step", "fastest"], "invalid choice: 'fastest'"),
        (["--arch", "gfx1100"], "invalid choice: 'gfx1100'"),
        (["--cuda-arch", "hopper"], "`hopper` is no architecture such as sm_90"),
        (["--jobs", "0"], "invalid choice"),
    ],
)
def test_a_wrong_call_is_exit_code_2(
    asked: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_wrong_call(main, asked, sentence, capsys)


def test_a_file_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_unwritable(lambda asked: main(asked, [RIGHT]), SHORT, tmp_path, capsys)


def test_without_gpu_nvcc_and_matplotlib_it_says_so_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_driver() -> Any:
        raise CudaError("there is no NVIDIA GPU here (libcuda.so.1 is not found)")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "find_nvcc", lambda: None)
    monkeypatch.setattr(command, "driver_library", no_driver)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([*SHORT, "--run"], [RIGHT]) == 0
    said = capsys.readouterr().out
    assert "no nvcc here, so no registers: pip install '.[cuda]'" in said
    assert "--run: there is no NVIDIA GPU here" in said
    assert "no plot: it takes matplotlib (pip install" in said
    assert "1 of 1 steps agree with NumPy" in said
    assert not (tmp_path / "gpu_gemm.svg").exists()


def test_the_plot_needs_matplotlib_only_when_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    check_needs_matplotlib(lambda: plot.svg([], "MI300X"), monkeypatch)
