"""Schedules for matrix cores: `gemm_schedule` and `mfma_schedule`."""
