"""The runtime that generated modules share, as text: it is written beside them as it is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

RUNTIME = "_mfma_runtime"
"""The name of its module. No intrinsic is called so: their names start with a letter."""

RUNTIME_MARKER = "Written by `mfmadsl compile` beside the modules that it generates"
"""The words by which a runtime is known that an earlier call has written."""


@cache
def runtime_text() -> str:
    """The source of the runtime: that of the module which `load_intrinsic` uses."""
    path = Path(__file__).parent.parent / "generated" / f"{RUNTIME}.py"
    return path.read_text(encoding="utf-8")
