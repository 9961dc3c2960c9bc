"""Machine code on a machine without a GPU. Knows neither TVM nor the `.mfma` library.

The names below are imported when they are first used, so that who only reads a kernel's registers
does not wait for what runs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.emulator.error import EmulationError as EmulationError
    from mfmadsl.emulator.run import Run as Run
    from mfmadsl.emulator.run import emulate as emulate

_HOME = {"EmulationError": "error", "Run": "run", "emulate": "run"}

__all__ = ["EmulationError", "Run", "emulate"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
