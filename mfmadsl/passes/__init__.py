"""TIR to TIR: passes that take any kernel whose buffers are flat, and give the same kernel.

They stand in `backend/gpu/pipeline.py` among those of TVM.
"""

from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.types.bits import move_bits
from mfmadsl.passes.types.functions import expand_functions, prefer_numbers
from mfmadsl.passes.types.narrow import narrow_types

__all__ = ["LoweringError", "expand_functions", "move_bits", "narrow_types", "prefer_numbers"]
