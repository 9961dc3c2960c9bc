"""A token's way through a block with weights of four bits, and its time in the chip model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).parents[2] / "examples" / "llama_block" / "decode" / "run.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(COMMAND), "--model", "tiny", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_a_step_is_right_and_without_faults(arch: str) -> None:
    """`known` is no multiple of a tile."""
    done = run("--arch", arch, "--known", "77", "--sanitize")
    assert done.returncode == 0, done.stdout + done.stderr
    errors = re.findall(r"(?:y|key|value) (\d\.\de-\d+)", done.stdout)
    assert len(errors) == 3
    assert all(0 < float(error) < 2e-3 for error in errors)
    assert re.search(r"\d+ launches on the emulated MI\w+, 0 faults\n", done.stdout)
    assert "of HBM" not in done.stdout


@pytest.mark.thorough
def test_the_table_has_a_line_for_each_launch() -> None:
    """Pairs of columns, the residual, the norms and the cache cost no launch of their own."""
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    (launches,) = re.findall(r"(\d+) launches", done.stdout.splitlines()[-1])
    table = done.stdout.splitlines()
    table = table[table.index("      us  of HBM  kernel") + 1 :]
    kernels = [line for line in table if line.endswith(("_kernel", "_kernel_1", "_kernel_2"))]
    assert len(kernels) == int(launches)
    fused_parts = ("rms_norm_qkv", "rotated_write", "rms_norm_gate_up", "gated")
    for fused in (*fused_parts, "out_NT_matmul1_add", "down_NT_matmul3_add"):
        assert sum(fused in line for line in kernels) == 1
    whole = sum(float(line.split()[0]) for line in kernels)
    (told,) = (float(line.split()[0]) for line in table if line.endswith("all kernels"))
    assert told == pytest.approx(whole, abs=0.01 * len(kernels))


@pytest.mark.parametrize("known", ["0", "-3", "many"])
def test_a_wrong_number_of_tokens_is_refused(known: str) -> None:
    done = run("--known", known)
    assert done.returncode == 2
    assert f"{known} is no number of tokens: 1, 2, 3, ..." in done.stderr
    assert "Traceback" not in done.stderr
