"""Who executed which statement, as a fault names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement of the kernel; its text is printed only when somebody asks."""

    node: Any

    def __str__(self) -> str:
        """The statement itself: TVM's printer declares before it what it uses."""
        return str(self.node).strip().splitlines()[-1].strip()


@dataclass(frozen=True)
class Place:
    """A statement, and the warp that executed it."""

    who: str
    statement: Statement

    def __str__(self) -> str:
        return f"{self.who}: {self.statement}"
