"""Machine code on a machine without a GPU. Knows neither TVM nor the `.mfma` library."""

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.run import Run, emulate

__all__ = ["EmulationError", "Run", "emulate"]
