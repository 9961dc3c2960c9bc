"""What several test modules share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def llvm_intrinsics() -> dict[str, Any]:
    """What LLVM 22 selects for each matrix intrinsic, by intrinsic."""
    text = (DATA / "llvm_matrix_intrinsics.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found
