"""What stops a schedule."""

from __future__ import annotations


class ScheduleError(ValueError):
    """An argument of a schedule does not fit the workload, the instruction or the chip."""
