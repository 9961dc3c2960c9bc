"""The GEMM schedule: any shape, layout and type, at the speed of the matrix cores."""

from mfmadsl.schedule.writer.fragment import makes_gemm
from mfmadsl.schedule.writer.schedule import gemm_schedule, gemm_tiling
from mfmadsl.schedule.writer.tiling import Tiling

__all__ = ["Tiling", "gemm_schedule", "gemm_tiling", "makes_gemm"]
