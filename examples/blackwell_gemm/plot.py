"""The ladder as a picture: what is hidden behind what, and how much latency each step hides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples import figure
from examples.blackwell_gemm.ladder import Step
from examples.blackwell_gemm.model import share, timeline

COLOURS = {"load": "#9ecae1", "mma": "#d94801", "write": "#a1d99b"}
ROWS = {"load": 0.68, "mma": 0.36, "write": 0.04}
DRAWN_STEPS, DRAWN_TILES = 6, 2  # of each timeline
NEW_SCHEDULE = ("v4", "v5", "v7", "v8", "v9", "v10")  # the others differ elsewhere
LARGEST_LATENCY = 12


def svg(steps: Sequence[Step], latency: float) -> bytes:
    """Two plots of the model. Raises NoPlotError without matplotlib."""

    def draw(canvas: Any) -> None:
        curves, lines = canvas.subplots(1, 2)
        _draw_shares(curves, steps, latency)
        _draw_timelines(lines, [step for step in steps if step.name in NEW_SCHEDULE], latency)

    return figure.svg("blackwell_gemm", (13, 5.2), draw)


def _draw_shares(axes: Any, steps: Sequence[Step], latency: float) -> None:
    latencies = [x / 4 for x in range(4 * LARGEST_LATENCY + 1)]
    alike: dict[tuple[float, ...], list[str]] = {}  # steps that the model does not tell apart
    for step in steps:
        alike.setdefault(tuple(share(step, x) for x in latencies), []).append(step.name)
    for number, (shares, names) in enumerate(alike.items()):
        axes.plot(latencies, shares, color=f"C{number}", label=", ".join(names))
    axes.axvline(latency, color="gray", linestyle=":")
    axes.set_xlabel("latency of memory, in MMAs of 128 x 128 x 64")
    axes.set_ylabel("share of the time in which the tensor core works")
    axes.set_xlim(0, LARGEST_LATENCY)
    axes.set_ylim(0, 1)
    axes.legend()


def _draw_timelines(axes: Any, steps: Sequence[Step], latency: float) -> None:
    for place, step in enumerate(steps):
        spans = timeline(step, latency, DRAWN_STEPS, DRAWN_TILES if step.persistent else 1)
        for span in spans:
            bottom = -place + ROWS[span.engine]
            axes.broken_barh(
                [(span.start, span.end - span.start)], (bottom, 0.28),
                facecolor=COLOURS[span.engine], edgecolor="white", linewidth=0.4,
                alpha=0.75 if span.engine == "load" else 1,
            )  # fmt: skip
    axes.set_yticks([0.5 - place for place in range(len(steps))], [step.name for step in steps])
    axes.set_xlabel(f"time, in MMAs of 128 x 128 x 64; a load and a write-back take {latency:g}")
    for engine, colour in COLOURS.items():
        axes.broken_barh([], (0, 0), facecolor=colour, label=engine)
    axes.legend(loc="upper right")
