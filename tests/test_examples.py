"""Every example runs, from a folder of its own, and says what it should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def said(example: str, folder: Path, *options: str) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / example), *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_demo_shows_every_stage_and_the_result_agrees(tmp_path: Path) -> None:
    output = said("demo.py", tmp_path)
    for shown in (
        "intrinsic mfma_f32_16x16x16_f16 {",
        "load_a = mfma.load(",
        "sch.blockize(",
        "llvm.amdgcn.mfma.f32.16x16x16f16",
        "v_mfma_f32_16x16x16_f16 ",
        "0 spilled",
        ": agrees",
    ):
        assert shown in output


@pytest.mark.thorough
def test_two_products_in_one_kernel_are_right_and_take_less_time(tmp_path: Path) -> None:
    output = said("fused_chain/run.py", tmp_path)
    assert ", 0 spilled," in output
    assert "agrees with NumPy" in output
    rows = {
        found[1]: (int(found[2].replace(",", "")), float(found[3]))
        for found in re.finditer(r"^(\w.*?)  +([\d,]+) +([\d.]+)% +[\d.]+$", output, re.MULTILINE)
    }
    assert len(rows) == 4
    cycles, matrix = rows["one kernel"]
    assert cycles < 0.7 * rows["both products apart"][0]
    assert matrix > 70
