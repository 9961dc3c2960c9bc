"""Runs TIRX kernels for B200 in NumPy, and reports what their synchronisation does not order."""

from examples.blackwell_gemm.interpreter.launch import execute
from examples.blackwell_gemm.interpreter.report import Counts, Fault, Kind, NotUnderstood, Report

__all__ = ["Counts", "Fault", "Kind", "NotUnderstood", "Report", "execute"]
