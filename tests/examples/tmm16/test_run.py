"""The accelerator's ladder: each step multiplies as NumPy does, on a unit of any shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError

from examples.tmm16 import run
from examples.tmm16.blocked import blocked
from examples.tmm16.unit import SPEC, described, module
from mfmadsl.schedule import matmul

SPEC_TEXT = SPEC.read_text()


def called(*arguments: object) -> int:
    return run.main([str(argument) for argument in arguments])


def described_as(folder: Path, old: str, new: str) -> Path:
    """The description with one change."""
    assert old in SPEC_TEXT
    path = folder / "unit.mfma"
    path.write_text(SPEC_TEXT.replace(old, new))
    return path


def test_all_steps_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("--size", 192, "--json", tmp_path / "found.json") == 0
    said = capsys.readouterr().out
    assert "C = A x B^T of 192 cubed, on a unit of 16x16x16" in said
    found = json.loads((tmp_path / "found.json").read_text())
    assert [each["step"] for each in found] == [name for name, _, _ in run.STEPS]
    assert all(each["error"] <= 1 and each["seconds"] > 0 for each in found)


@pytest.mark.parametrize("shape", ["m=32 n=32 k=16", "m=16 n=8 k=4", "m=4 n=12 k=24"])
def test_with_one_change_of_the_description_it_is_another_unit(
    shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = described_as(tmp_path, "m=16 n=16 k=16", shape)
    assert called("--size", 96, "--spec", spec) == 0
    tile = "x".join(part.partition("=")[2] for part in shape.split())
    assert f"on a unit of {tile}," in capsys.readouterr().out


def test_a_tile_that_is_not_the_units_is_no_call_of_it() -> None:
    """TVM compares loops: before the sums are filled apart, a tile does more than the unit."""
    unit = module(described(SPEC))
    sch = Schedule(matmul(64, 64, 64, "float32", "float32", b_transposed=True))
    blocked(sch, unit)
    with pytest.raises(ScheduleError):
        sch.tensorize(sch.get_loops(sch.get_sblock("C"))[-3], unit.COMPUTE)


def test_a_wrong_product_is_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swapped = run.Timed("blocked", "", 1.0, 1.0, 1.5)
    monkeypatch.setattr(run, "timed", lambda *_: swapped)
    assert called("--size", 64) == 1
    assert "DIFFER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b      float32[j, k]", "b      float32[k, j]", "multiplies A[i, k] and B[j, k]"),
        ("a      float32", "a      float64", "`a` is float64, but tmm16.c is of float32"),
        ("accelerator tmm16", "accelerated tmm16", "accelerated"),
        ("m=16", "m=0", "m=0"),
    ],
)
def test_a_description_that_does_not_fit_is_exit_1(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("--spec", described_as(tmp_path, old, new)) == 1
    assert message in capsys.readouterr().err


def test_two_units_are_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.mfma"
    path.write_text(SPEC_TEXT + SPEC_TEXT.replace("accelerator tmm16", "accelerator other"))
    assert called("--spec", path) == 1
    assert "describes 2 accelerators, not one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "message"), [("100", "is no multiple of"), ("0", "from 1 to 4096"), ("x", "invalid")]
)
def test_a_wrong_size_is_exit_2(
    size: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        called("--size", size)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
