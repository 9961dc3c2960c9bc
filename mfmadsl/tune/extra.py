"""What TVM's tuning and RPC need beside TVM."""

from __future__ import annotations

import importlib.util

from mfmadsl.error import ArgumentError

_NEEDED = ("cloudpickle", "psutil", "tornado")


def needs_extra() -> None:
    """Raise ArgumentError, with what to install, where something is missing."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ArgumentError(f"TVM's tuning needs {', '.join(missing)}: pip install 'mfmadsl[tune]'")
