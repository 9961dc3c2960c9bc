"""Every example runs, from a folder of its own, and says what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
