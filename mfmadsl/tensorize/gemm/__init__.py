"""The GEMM schedule: any shape, layout and type, at the speed of the matrix cores."""

from mfmadsl.tensorize.gemm.fragment import makes_gemm
from mfmadsl.tensorize.gemm.schedule import gemm_schedule, gemm_tiling
from mfmadsl.tensorize.gemm.tiling import Tiling

__all__ = ["Tiling", "gemm_schedule", "gemm_tiling", "makes_gemm"]
