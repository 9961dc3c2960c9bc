"""What an entry describes, in words: a summary for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mfmadsl.error import ArgumentError
from mfmadsl.model import Accelerator, Fragment, Intrinsic, Microkernel, Read
from mfmadsl.report.accelerator import accelerator_summary
from mfmadsl.report.intrinsic import fragment_summary, intrinsic_summary
from mfmadsl.report.microkernel import microkernel_summary
from mfmadsl.report.read import read_summary

_SUMMARIES: Mapping[type, Callable[[Any], str]] = {
    Intrinsic: intrinsic_summary,
    Fragment: fragment_summary,
    Microkernel: microkernel_summary,
    Read: read_summary,
    Accelerator: accelerator_summary,
}


def summary_of(entry: Intrinsic | Fragment | Microkernel | Read | Accelerator) -> str:
    """An entry in words. Raises ArgumentError for what is none."""
    summary = _SUMMARIES.get(type(entry))
    if summary is None:
        raise ArgumentError(f"{type(entry).__name__} has no summary")
    return summary(entry)
