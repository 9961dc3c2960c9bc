"""An emulated GPU behind HIP's own interface: a library in the place of libamdhip64.so, and the
server that runs what is launched."""

from __future__ import annotations

from mfmadsl.device.gpu import Options as Options
from mfmadsl.device.program import Ended as Ended
from mfmadsl.device.program import run_program as run_program

__all__ = ["Ended", "Options", "run_program"]
