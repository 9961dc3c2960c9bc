"""Launches that are ready, and how long they take by HIP's own events."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from mfmadsl.hip.binding import Hip

_WARMING = 3  # times before the first that counts


@dataclass(frozen=True)
class Ready:
    """A launch whose kernel is loaded and whose arguments lie on the GPU."""

    function: Any
    grid: Sequence[int]
    block: Sequence[int]
    arguments: bytes

    def start(self, runtime: Hip) -> None:
        """Launch the kernel once."""
        # The code object tells the size of the LDS itself: nothing is added to it.
        runtime.launch(self.function, self.grid, self.block, 0, self.arguments)


def seconds_of(
    stack: ExitStack, runtime: Hip, ready: Sequence[Ready], repeat: int
) -> tuple[float, ...]:
    """Seconds of all launches together, each time that they are repeated."""
    first, last = (stack.enter_context(runtime.event()) for _ in range(2))
    found = []
    for iteration in range(_WARMING + repeat):
        runtime.record(first)
        for each in ready:
            each.start(runtime)
        runtime.record(last)
        seconds = runtime.seconds(first, last)
        if iteration >= _WARMING:
            found.append(seconds)
    return tuple(found)


def median_seconds(stack: ExitStack, runtime: Hip, ready: Sequence[Ready], repeat: int) -> float:
    """The median of so many launches, after some that warm up."""
    return median(seconds_of(stack, runtime, ready, repeat))
