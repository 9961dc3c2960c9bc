"""TIR to TIR: passes that take any kernel whose buffers are flat, and give the same kernel.

They stand in `backend/pipeline.py` among those of TVM.
"""

from mfmadsl.passes.bits import move_bits
from mfmadsl.passes.error import LoweringError
from mfmadsl.passes.functions import expand_functions, prefer_numbers
from mfmadsl.passes.narrow import narrow_types

__all__ = ["LoweringError", "expand_functions", "move_bits", "narrow_types", "prefer_numbers"]
