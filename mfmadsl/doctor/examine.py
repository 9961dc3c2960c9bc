"""All findings, in the order in which one thing needs another."""

from __future__ import annotations

from mfmadsl.doctor.finding import Finding
from mfmadsl.doctor.job import cpu, job
from mfmadsl.doctor.machine import cache, home, package, python
from mfmadsl.doctor.packages import dependencies, extras
from mfmadsl.doctor.programs import programs


def examine() -> tuple[Finding, ...]:
    """Look at everything. Takes some seconds; child processes import what may be broken."""
    return (
        python(),
        package(),
        home(),
        *dependencies(),
        *job(),
        cache(),
        cpu(),
        *programs(),
        *extras(),
    )
