"""Every example runs, from a folder of its own, and says what it should."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_demo_shows_every_stage_and_the_result_agrees(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples/demo.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    for shown in (
        "intrinsic mfma_f32_16x16x16_f16 {",
        "def load_a(scope):",
        'T.thread_binding(4, thread="threadIdx.y")',
        "v_mfma_f32_16x16x16_f16 ",
        "0 spilled",
        ": agrees",
    ):
        assert shown in done.stdout


@pytest.mark.skipif(find_spec("ziglang") is None, reason="no ziglang here to compile C with")
def test_the_accelerator_multiplies_as_numpy_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples/tmm16/run.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1024x1024x1024 in" in done.stdout
    assert ": agrees" in done.stdout
