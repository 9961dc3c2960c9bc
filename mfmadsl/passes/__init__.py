"""Passes from TIR to fast TIR, for any kernel: they know the chip, and nothing of GEMM."""
