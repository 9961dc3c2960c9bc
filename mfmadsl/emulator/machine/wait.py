"""The counters of memory instructions under way, and `s_waitcnt` (CDNA3 ISA, section 4.4)."""

from __future__ import annotations

import re
from typing import Literal as OneOf
from typing import get_args

from mfmadsl.model import CDNA
from mfmadsl.model.wait import WaitCounter

Counter = OneOf["vmcnt", "lgkmcnt"]

_WAIT = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_COUNTERS: dict[Counter, WaitCounter] = {
    name: counter
    for name in get_args(Counter)
    for counter in CDNA.wait_counters
    if counter.name == name
}
LARGEST: dict[Counter, int] = {name: counter.largest for name, counter in _COUNTERS.items()}
"""How many instructions of a kind may be under way; the next one waits to be issued."""


def wait_counts(text: str) -> dict[Counter, int]:
    """What `s_waitcnt` waits for: its operand in words or as the number of the encoding."""
    counts: dict[Counter, int] = {}
    for name, value in _WAIT.findall(text):
        if name != "expcnt":
            counts[name] = int(value)
    if not _WAIT.search(text):
        bits = int(text, 0)
        counts = {name: counter.decoded(bits) for name, counter in _COUNTERS.items()}
    return {name: n for name, n in counts.items() if n < LARGEST[name]}
