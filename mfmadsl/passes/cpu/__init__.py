"""Passes of kernels for CPUs."""
