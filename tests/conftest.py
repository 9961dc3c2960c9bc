"""What several test modules share."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Machines are noisy: how long an example takes is no mistake of the code.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

# Set before workers start, so that all of them draw the same cases.
os.environ.setdefault("MFMADSL_SEED", str(random.SystemRandom().randrange(10**6)))


def pytest_report_header() -> str:
    return f"cases are drawn with MFMADSL_SEED={os.environ['MFMADSL_SEED']}"


DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def llvm_intrinsics() -> dict[str, Any]:
    """What LLVM 22 selects for each matrix intrinsic, by intrinsic."""
    text = (DATA / "llvm_matrix_intrinsics.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found
