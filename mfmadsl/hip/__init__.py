"""Kernels on a GPU: HIP by ctypes, arrays in a GPU's memory, running and timing."""
