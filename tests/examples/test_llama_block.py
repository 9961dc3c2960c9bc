"""A block of a Llama, from Relax to results of the emulated GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INFER = ROOT / "examples" / "llama_block" / "infer.py"
COMMAND = [sys.executable, str(ROOT / "examples" / "llama_block" / "run.py")]


@pytest.mark.thorough
def test_one_command_compiles_exports_and_runs_it(tmp_path: Path) -> None:
    written, kept = tmp_path / "numbers.json", tmp_path / "kept"
    done = subprocess.run(
        [*COMMAND, "--dtype", "bfloat16", "--json", str(written), "--keep", str(kept)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 of them products, by mfmadsl" in done.stdout
    found = json.loads(written.read_text())
    assert found["faults"] == 0
    assert found["launches"] == 74
    assert [(turn["new"], turn["known"]) for turn in found["turns"]] == [
        (17, 0), (1, 17), (5, 18), (1, 23),
    ]  # fmt: skip
    for turn in found["turns"]:
        assert 0 < turn["error"] < turn["cpu_error"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "numbers.json"]
    done = subprocess.run(
        [sys.executable, str(INFER), "cpu", str(kept)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bfloat16: 4 turns on cpu, ")


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    line = [*COMMAND, "--keep", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is there already: name an empty folder" in done.stderr


def test_what_is_not_there_cannot_be_run(tmp_path: Path) -> None:
    line = [sys.executable, str(INFER), "cpu", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is nothing to run: `run.py --keep FOLDER` writes it" in done.stderr


def test_a_wrong_call_is_told() -> None:
    done = subprocess.run([*COMMAND, "--arch", "gfx1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "invalid choice: 'gfx1'" in done.stderr
