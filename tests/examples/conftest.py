"""What the tests of several examples need."""

from __future__ import annotations

import pytest

from examples.nvcc import TO_INSTALL, Nvcc, find_nvcc


@pytest.fixture(scope="session")
def nvcc() -> Nvcc:
    """An nvcc. pip brings one, but it calls the system's C++ compiler, which need not be there."""
    found = find_nvcc()
    if found is None:
        pytest.skip(f"no g++ here, or no nvcc that would call it: {TO_INSTALL}")
    return found
