"""The runtime that generated modules share, as text: it is written beside them as it is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

RUNTIME = "_mfma_runtime"
"""The name of its package. No intrinsic is called so: their names start with a letter."""

RUNTIME_MARKER = "Written by `mfmadsl compile` beside the modules that it generates"
"""The words by which a file of the runtime is known that an earlier call has written."""


@cache
def runtime_texts() -> Mapping[str, str]:
    """The source of each file of the runtime by its name: that which `load_intrinsic` uses."""
    folder = Path(__file__).parent.parent / "generated" / RUNTIME
    files = sorted(folder.glob("*.py"))
    return MappingProxyType({path.name: path.read_text(encoding="utf-8") for path in files})
