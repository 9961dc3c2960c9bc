"""Cases of which `make test` takes some; `make test-all` takes all."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

Case = TypeVar("Case")

ALL = os.environ.get("MFMADSL_TESTS") == "all"
SEED = int(os.environ["MFMADSL_SEED"])
FIRST = int(os.environ.get("MFMADSL_FIRST", "0"))
"""The number of the first random workload, where not the usual ones are asked for."""


def drawn(cases: Iterable[Case], count: int) -> list[Case]:
    """So many of the cases, in their order; all of them with `make test-all`."""
    every = list(cases)
    if ALL or len(every) <= count:
        return every
    return [every[place] for place in sorted(random.Random(SEED).sample(range(len(every)), count))]
