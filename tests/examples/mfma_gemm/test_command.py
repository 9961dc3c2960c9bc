"""The command's options, files and exit codes, at small sizes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tvm import te
from tvm.tirx import PrimFunc

from examples.mfma_gemm import plot
from examples.mfma_gemm.command import main
from examples.mfma_gemm.ladder import ladder
from examples.mfma_gemm.measure import measure
from examples.mfma_gemm.step import Step
from examples.product import Size
from tests.examples.commands import check_needs_matplotlib, check_unwritable, check_wrong_call

SHORT = ["--size", "200x180x100", "--jobs", "1"]
RIGHT = next(step for step in ladder("gfx942") if step.name == "swizzle")


class Shifted(Step):
    """A step of another product: each column of B is taken for the one before it."""

    def workload(self, size: Size) -> PrimFunc:
        a = te.placeholder((size.m, size.k), name="A", dtype="float16")
        b = te.placeholder((size.n, size.k), name="B", dtype="float16")
        k = te.reduce_axis((0, size.k), name="k")
        c = te.compute(
            (size.m, size.n),
            lambda i, j: te.sum(
                a[i, k].astype("float32") * b[te.indexmod(j + 1, size.n), k].astype("float32"),
                axis=[k],
            ),
            name="C",
        )
        return te.create_prim_func([a, b, c])


WRONG = Shifted("shifted", "a column off", "gfx942", RIGHT.tiling)


@pytest.mark.thorough
def test_a_wrong_product_is_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*SHORT, "--json", "found.json"], [RIGHT, WRONG]) == 1
    said = capsys.readouterr()
    assert "1 of 2 steps agree with NumPy" in said.out
    assert "error: shifted on gfx942: " in said.err
    assert "elements are wrong, the first of them C[0, 0] = " in said.err
    (chip,) = json.loads((tmp_path / "found.json").read_text())["chips"]
    assert [step["right"] for step in chip["steps"]] == [True, False]


def test_what_is_refused_is_a_sentence_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    illegal = replace(RIGHT, tiling=replace(RIGHT.tiling, k_step=17))
    assert main(SHORT, [illegal]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: tiling: k_step: 17 is no power of two")
    assert len(said.splitlines()) == 1


def test_the_same_plot_each_time() -> None:
    small = Size(130, 140, 100)
    measured = measure([RIGHT], {"gfx942": small}, small=small)
    assert plot.svg([measured]) == plot.svg([measured])


@pytest.mark.thorough
def test_two_processes_say_what_one_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--arch", "gfx942", "--step", "persistent", "--step", "k_packing"]
    said = []
    for jobs in ("1", "2"):
        assert main([*asked, "--size", "200x180x100", "--jobs", jobs]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert said[0].index("k_packing") < said[0].index("persistent")


def test_the_main_loops_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--asm", "loads_in_flight", "--size", "512x512x1024"]) == 0
    both = capsys.readouterr().out
    assert "; loads_in_flight of 512x512x1024 on gfx942: an iteration of the main loop\n" in both
    assert "; loads_in_flight of 512x512x1024 on gfx950: an iteration of the main loop\n" in both
    assert "before: swizzle" in both
    assert "after: loads_in_flight" in both


@pytest.mark.thorough
def test_all_lines_of_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--asm", "swizzle", "--arch", "gfx942", "--size", "512x512x1024"]
    assert main(asked) == 0
    short = capsys.readouterr().out.splitlines()
    assert main([*asked, "--full"]) == 0
    full = capsys.readouterr().out.splitlines()
    assert len(full) > 4 * len(short)
    assert any("v_mfma_f32_16x16x16_f16 v[" in line for line in full)
    assert full[-1].split()[0] == "s_cbranch_scc1"


def test_the_first_step_has_none_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--asm", "one_instruction", "--arch", "gfx950", "--size", "512x512x1024"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "before" not in said
    assert "buffer_load_dwordx4" in said.splitlines()[1]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--size", "large"], "`large` is no size such as 8192x4864x1024"),
        (["--size", "0x128x128"], "`0x128x128` is no size such as 8192x4864x1024"),
        (["--step", "fastest"], "invalid choice: 'fastest'"),
        (["--arch", "gfx90a"], "invalid choice: 'gfx90a'"),
        (["--arch", "gfx942", "--step", "direct_loads"], "there is no step direct_loads on gfx942"),
        (["--arch", "gfx942", "--asm", "transposing_reads"], "there is no step transposing_reads"),
        (["--full"], "--full needs --asm"),
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


@pytest.mark.thorough
def test_without_matplotlib_it_says_so_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(SHORT, [RIGHT]) == 0
    said = capsys.readouterr().out
    assert "no plot: it takes matplotlib (pip install" in said
    assert "1 of 1 steps agree with NumPy" in said
    assert not (tmp_path / "mfma_gemm.svg").exists()


def test_the_plot_needs_matplotlib_only_when_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    check_needs_matplotlib(lambda: plot.svg([]), monkeypatch)
