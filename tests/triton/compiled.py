"""Kernels that Triton compiles in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def compile_cases(folder: Path, cases: Iterable[str]) -> Path:
    """The folder, with what `tests.triton.kernels` writes for these cases."""
    subprocess.run(
        [sys.executable, "-m", "tests.triton.kernels", folder, *cases],
        check=True,
        cwd=ROOT,
        env={**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")},
    )
    return folder
