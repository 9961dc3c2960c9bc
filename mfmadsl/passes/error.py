"""What stops a pass."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NotUnderstood(Exception):  # noqa: N818 - it is an answer, and never leaves the passes
    """A loop that a pass leaves as it is, with TVM's own barriers, and why."""

    reason: str

    def __str__(self) -> str:
        return self.reason
