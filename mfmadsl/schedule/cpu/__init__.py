"""Schedules for CPUs: `cpu_gemm_schedule`."""
