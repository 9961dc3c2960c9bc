"""The command: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from examples.cpu_matmul_exp import command, measure
from examples.cpu_matmul_exp.chain import Size
from examples.cpu_matmul_exp.command import CPUS, main
from examples.cpu_matmul_exp.ladder import ladder
from examples.cpu_matmul_exp.measure import Answer, MeasureError, Request, Timed
from tests.examples.commands import check_wrong_call

RUN = Path(measure.__file__).with_name("run.py")
SIZE = Size(32, 16, 24, 40)
SHORT = ["--size", str(SIZE), "--threads", "1", "--seconds", "0"]


def timed(request: Request) -> Answer:
    """Of the step with number i in 10^-i seconds; NumPy takes twice as long as the last."""
    steps = tuple(
        Timed(name, (10.0**-number, 3 * 10.0**-number, 2 * 10.0**-number), 0.25, None)
        for number, name in enumerate(request.steps)
    )
    last = steps[-1].seconds
    numpy = Timed("NumPy", (2 * last,), 0.5, None)
    return Answer(request.threads, "a-cpu", "a BLAS, kernel Own, 1 threads", steps, numpy)


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.thorough
def test_two_steps_from_a_folder_of_ones_own(tmp_path: Path) -> None:
    """In processes of their own, as people call it."""
    asked = ["--step", "reordered", "--step", "vectorized", "--json", "found.json", *SHORT]
    done = subprocess.run(
        [sys.executable, str(RUN), *asked],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "32x16x24x40 (M x K x N x P), 1 thread of a " in done.stdout
    assert "; NumPy has openblas " in done.stdout
    assert ", kernel " in done.stdout
    assert "3 of 3 results agree with float64" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["size"] == {"m": 32, "k": 16, "n": 24, "p": 40}
    (threads,) = found["threads"]
    assert [step["name"] for step in threads["steps"]] == ["reordered", "vectorized"]
    assert (tmp_path / "cpu_matmul_exp.svg").read_bytes().startswith(b"<?xml")


def test_the_table_and_the_json_have_the_same_numbers(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "measured", timed)
    asked = [
        "--size",
        "1000x1000x1000x1000",
        "--step",
        "tiled",
        "--step",
        "naive",
        "--threads",
        "1",
    ]
    assert main([*asked, "--json", "found.json"]) == 0
    said = capsys.readouterr().out
    assert "1000x1000x1000x1000 (M x K x N x P), 1 thread of a a-cpu; NumPy has a BLAS" in said
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.strip()}
    assert rows["naive"] == ["2.00000", "1.00000", "3", "2.0", "0.200", "0.250"]
    assert rows["tiled"] == ["0.20000", "0.10000", "3", "20.0", "10.00", "2.000", "0.250"]
    assert rows["NumPy"] == ["0.40000", "0.40000", "1", "10.0", "1.000", "0.500"]
    (threads,) = json.loads((in_a_folder / "found.json").read_text())["threads"]
    naive, tiled = threads["steps"]
    assert tiled["seconds"] == pytest.approx(0.2)
    assert tiled["of_numpy"] == pytest.approx(2)
    assert naive["gigaflops"] == pytest.approx(2)
    assert naive["runs"] == [1, 3, 2]


def test_all_steps_with_one_thread_and_with_all_unless_asked_otherwise(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "measured", timed)
    assert main([]) == 0
    said = capsys.readouterr().out
    assert said.count("1024x2048x1024x3072 (M x K x N x P)") == len({1, CPUS})
    for step in ladder():
        assert said.count(f"\n{step.name} ") == len({1, CPUS})


def test_a_wrong_number_is_exit_code_1(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_wrong(request: Request) -> Answer:
        wrong = Timed("naive", (1.0,), None, "5 of 6 elements are wrong")
        refused = Timed("tuned", (), None, None, "no trace can be read")
        numpy = Timed("NumPy", (1.0,), 0.5, None)
        return Answer(request.threads, "a-cpu", "a BLAS", (wrong, refused), numpy)

    monkeypatch.setattr(command, "measured", one_wrong)
    assert main(SHORT) == 1
    said = capsys.readouterr()
    assert "1 of 3 results agree with float64" in said.out
    assert "error: naive, threads: 1: 5 of 6 elements are wrong\n" in said.err
    assert "error: tuned, threads: 1: no trace can be read\n" in said.err
    assert "\ntuned " not in said.out


def test_the_same_numbers_make_the_same_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "measured", timed)
    for name in ("one.svg", "two.svg"):
        assert main([*SHORT, "--svg", str(tmp_path / name)]) == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "NumPy, 1 thread</text>" in (tmp_path / "one.svg").read_text()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--size", "0x1x1x1"], "each of M, K, N and P is at least 1"),
        (["--size", "-4x1x1x1"], "expected one argument"),
        (["--size=-4x1x1x1"], "`-4x1x1x1` is no size MxKxNxP such as 1024x2048x1024x3072"),
        (["--size", "9999999x9999999x9x9"], "a matrix has more than 67108864 elements"),
        (["--step", "fastest"], "invalid choice: 'fastest'"),
        (["--threads", "0"], "invalid choice: 0"),
        (["--threads", str(CPUS + 1)], "invalid choice"),
        (["--seconds", "nan"], "`nan` is no number of seconds from 0 to 3600"),
        (["--seconds=-1"], "is no number of seconds"),
        (["--tune", "0"], "`0` is no number of trials from 1 to 10000"),
        (["--tune", "many"], "is no number of trials"),
    ],
)
def test_a_wrong_call_is_exit_code_2(
    asked: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_wrong_call(main, asked, sentence, capsys)


@pytest.mark.parametrize("option", ["--svg", "--json"])
def test_a_file_that_cannot_be_written_is_a_sentence(
    option: str,
    in_a_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "measured", timed)
    for place in (in_a_folder / "none" / "file", in_a_folder / ".."):
        assert main([*SHORT, option, str(place)]) == 1
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert "cannot be written" in said


def test_a_process_that_fails_is_a_sentence(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(request: Request) -> Answer:
        raise MeasureError("the process ended")

    monkeypatch.setattr(command, "measured", fails)
    assert main(SHORT) == 1
    assert capsys.readouterr().err == "error: the process ended\n"


@pytest.mark.thorough
def test_tuning_writes_the_trace_that_is_replayed(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--tune", "1", "--trace", "trace.json", "--step", "tuned", *SHORT]
    assert main(asked) == 0
    assert "trace       trace.json: 0.0" in capsys.readouterr().out
    assert json.loads((in_a_folder / "trace.json").read_text())["size"] == str(SIZE)


def test_without_matplotlib_it_says_so_and_goes_on(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "measured", timed)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(SHORT) == 0
    assert "note        no plot: it takes matplotlib (pip install" in capsys.readouterr().out
    assert not (in_a_folder / "cpu_matmul_exp.svg").exists()
