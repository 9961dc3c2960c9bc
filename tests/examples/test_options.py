"""What the examples' commands say of files that cannot be written, before they begin to work."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.options import check_outputs
from mfmadsl.output import OutputError

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS = [
    "attention", "blackwell_gemm", "cpu_matmul_exp", "gpu_gemm", "llama_block", "mfma_gemm",
    "tmm16",
]  # fmt: skip


def test_files_in_folders_that_are_there(tmp_path: Path) -> None:
    check_outputs(None, tmp_path / "new", Path("/dev/stdout"))


@pytest.mark.parametrize("path", ["nowhere/found.json", "/dev/null/x", "a\0b", ".."])
def test_others_are_refused(path: str) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        check_outputs(None, Path(path))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_refuses_at_once(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name / "run.py"), "--json", "nowhere/found.json"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    said = "nowhere/found.json: cannot be written: there is no such folder"
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["attention", "blackwell_gemm", "cpu_matmul_exp", "gpu_gemm", "mfma_gemm"]
)
def test_a_ladder_says_how_long_it_takes_and_how_to_take_a_part_of_it(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name / "run.py"), "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = " ".join(done.stdout.split())
    assert "on two cores" in said
    assert "--step" in said
    page = (EXAMPLES / name / "README.md").read_text()
    commands = [line for line in page.splitlines() if line.startswith("    python ")]
    assert any("--step" in line for line in commands)
    assert any(re.search(r"#.*(minute|seconds)", line) for line in commands)
