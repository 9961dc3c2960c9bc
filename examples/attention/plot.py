"""The ladder as a picture: operations a second, step by step, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples import figure
from examples.attention.ladder import NAMES
from examples.attention.measure import Measured
from mfmadsl.model import product_of


def svg(chips: Sequence[Sequence[Measured]]) -> bytes:
    """A line a chip, and one for its causal steps. Raises NoPlotError without matplotlib."""

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        there = {each.step.name for measured in chips for each in measured}
        names = [name for name in NAMES if name in there]
        names += sorted(there - set(names))
        for number, measured in enumerate(chips):
            arch, color = measured[0].step.arch, f"C{number}"
            label = f"{product_of(arch).name} ({arch})"
            for causal, line in ((False, "-"), (True, "--")):
                own = [each for each in measured if each.step.causal == causal]
                axes.plot(
                    [names.index(each.step.name) for each in own],
                    [each.prediction.tflops for each in own],
                    marker="o", linestyle=line, color=color,
                    label=f"{label}, causal" if causal else label,
                )  # fmt: skip
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_ylabel("TFLOP/s, without what is masked")
        axes.set_ylim(bottom=0)
        axes.set_title("An attention of float16 on matrix cores, in the model")
        axes.grid(visible=True, axis="y", alpha=0.4)
        axes.legend()

    return figure.svg("attention", (9, 5), draw)
