"""What is found about one thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

State = Literal["ok", "missing", "wrong"]
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True)
class Finding:
    """`needed` is whether the main job needs the thing: from a `.mfma` file to a kernel whose
    machine code is emulated. `remedy` says what to do unless the thing is ok."""

    name: str
    state: State
    needed: bool
    found: str
    remedy: str = ""


def works(findings: Iterable[Finding]) -> bool:
    """Whether all is ok that the main job needs."""
    return all(each.state == "ok" for each in findings if each.needed)
