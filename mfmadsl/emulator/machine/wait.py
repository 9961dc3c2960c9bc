"""The counters of memory instructions under way, and `s_waitcnt` (CDNA3 ISA, section 4.4)."""

from __future__ import annotations

import re
from typing import Literal as OneOf

Counter = OneOf["vmcnt", "lgkmcnt"]

_WAIT = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
LARGEST: dict[Counter, int] = {"vmcnt": 63, "lgkmcnt": 15}
"""How many instructions of a kind may be under way; the next one waits to be issued."""


def wait_counts(text: str) -> dict[Counter, int]:
    """What `s_waitcnt` waits for: its operand in words or as the number of the encoding."""
    counts: dict[Counter, int] = {}
    for name, value in _WAIT.findall(text):
        if name != "expcnt":
            counts[name] = int(value)
    if not _WAIT.search(text):
        bits = int(text, 0)
        counts = {"vmcnt": bits & 15 | bits >> 10 & 48, "lgkmcnt": bits >> 8 & 15}
    return {name: n for name, n in counts.items() if n < LARGEST[name]}
