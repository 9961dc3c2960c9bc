"""What stops a schedule."""

from __future__ import annotations

from mfmadsl.error import MfmadslError


class ScheduleError(MfmadslError, ValueError):
    """An argument of a schedule does not fit the workload, the instruction or the chip."""
