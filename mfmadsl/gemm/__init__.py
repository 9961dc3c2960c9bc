"""A product of matrices by name: what is asked for, its kernel, and a check beside NumPy."""

from mfmadsl.gemm.gemm import Gemm

__all__ = ["Gemm"]
