"""What several test modules share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Machines are noisy: how long an example takes is no mistake of the code.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def llvm_intrinsics() -> dict[str, Any]:
    """What LLVM 22 selects for each matrix intrinsic, by intrinsic."""
    text = (DATA / "llvm_matrix_intrinsics.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found
