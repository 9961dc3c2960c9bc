"""What of a step's time its tensor cores work, and what they take from memory: a teaching model.

There is one unit of time, that of an MMA of 128 x 128 x 64 on one SM's tensor core, and one
parameter: `latency`, how many of these units a trip through memory takes, be it a load of a stage
or the write-back of a tile. Loads never wait for bandwidth, and what instructions cost is left out.
So this shows what is hidden behind what, and nothing about a clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from examples.blackwell_gemm.kernels.problem import HALF_BYTES, ROWS_IN_L2, SMS
from examples.blackwell_gemm.ladder import Step

UNIT = 128 * 128 * 64
"""Multiply-adds of the MMA by which time is counted."""

TILES = 8
"""That a CTA takes one after the other, in the model."""


@dataclass(frozen=True)
class Span:
    """Work of one engine in units of time: `engine` is "load", "mma" or "write"."""

    engine: str
    start: float
    end: float


def units(step: Step) -> int:
    """MMAs of 128 x 128 x 64 that an SM does in a step along K."""
    m, n, k = step.tile
    return m * n * k // (step.cluster * UNIT)


def kib_loaded(step: Step) -> float:
    """KiB that come into an SM's shared memory for each unit."""
    m, n, k = step.tile
    return (m + n) * k * HALF_BYTES / step.cluster / units(step) / 1024


def kib_distinct(step: Step) -> float:
    """KiB of A and B that differ, for each unit of all SMs: at least so much comes from HBM.

    That is of the first tiles which a B200's SMs take at the same time, one or a pair of them each.
    """
    m, n, k = step.tile
    rows, columns = step.compile[0] // m, step.compile[1] // n
    taken = min(SMS // step.cluster, rows * columns)
    group = min(ROWS_IN_L2, rows) if step.persistent else rows
    a_panels, b_panels = set(), set()
    for index in range(taken):
        first = index // (group * columns) * group
        height = min(group, rows - first)
        inside = index - first * columns
        a_panels.add(first + inside % height)
        b_panels.add(inside // height)
    loaded = (len(a_panels) * m + len(b_panels) * n) * k * HALF_BYTES
    return loaded / (taken * step.cluster * units(step)) / 1024


def timeline(step: Step, latency: float, steps: int, tiles: int) -> list[Span]:
    """When an SM loads, multiplies and writes back, for `tiles` tiles of `steps` steps along K."""
    spans: list[Span] = []
    freed: list[float] = []  # when the MMA of each step, of all tiles, has ended
    last_load = sums_read = 0.0
    for _ in range(tiles):
        begun = 0.0 if step.roles else sums_read  # without roles, a tile begins after the last one
        for k in range(steps):
            index = len(freed)
            mma_before = freed[-1] if freed else 0.0
            stage_free = freed[index - step.stages] if index >= step.stages else 0.0
            last_load = max(begun, last_load, stage_free)
            start = max(last_load + latency, mma_before, sums_read if k == 0 else 0.0)
            spans.append(Span("load", last_load, last_load + latency))
            spans.append(Span("mma", start, start + units(step)))
            freed.append(start + units(step))
        sums_read = freed[-1] + latency
        spans.append(Span("write", freed[-1], sums_read))
    return spans


def share(step: Step, latency: float) -> float:
    """Of the time that a CTA takes at the step's large size, what the tensor core works in."""
    spans = timeline(step, latency, step.steps, TILES if step.persistent else 1)
    busy = sum(span.end - span.start for span in spans if span.engine == "mma")
    return busy / max(span.end for span in spans)


def limit(step: Step, latency: float) -> str:
    """What keeps the model's tensor core from working all the time."""
    needed = 1 + latency / units(step)  # stages in which a load is hidden behind MMAs
    if step.steps == 1:
        return "a load, an MMA, a store, in turn"
    if step.stages < needed:
        return "every load" if step.stages == 1 else f"loads: {step.stages} of {needed:g} stages"
    return "the end of a tile"
