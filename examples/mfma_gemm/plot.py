"""The ladder as a picture: multiply-adds a cycle and compute unit, step by step, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples import figure
from examples.mfma_gemm.ladder import NAMES
from examples.mfma_gemm.measure import Measured
from mfmadsl.model import product_of


def svg(chips: Sequence[Sequence[Measured]]) -> bytes:
    """Two lines a chip, of the whole and of one compute unit. Raises NoPlotError without
    matplotlib."""

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        there = {each.step.name for measured in chips for each in measured}
        names = [name for name in NAMES if name in there]
        names += sorted(there - set(names))
        for number, measured in enumerate(chips):
            arch, places = measured[0].step.arch, [names.index(e.step.name) for e in measured]
            label, color = f"{product_of(arch).name} ({arch})", f"C{number}"
            rates = [each.prediction.rate for each in measured]
            alone = [each.prediction.alone for each in measured]
            axes.plot(places, rates, marker="o", color=color, label=label)
            axes.plot(places, alone, linestyle=":", color=color, label=f"{arch}, one compute unit")
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_ylabel("multiply-adds a cycle and compute unit")
        axes.set_title("A product of float16 matrices on matrix cores, in the model")
        axes.grid(visible=True, axis="y", alpha=0.4)
        axes.legend()

    return figure.svg("mfma_gemm", (9, 5), draw)
