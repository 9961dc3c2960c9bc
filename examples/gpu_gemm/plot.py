"""The ladder as a picture: multiply-adds a cycle and compute unit, step by step, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples import figure
from examples.gpu_gemm.measure import Measured


def svg(measured: Sequence[Measured], chip: str) -> bytes:
    """A line a size, on a scale of powers of ten. Raises NoPlotError without matplotlib."""

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        names = [each.step.name for each in measured]
        for number, at in enumerate(measured[0].sizes):
            rates = [each.sizes[number].prediction.rate for each in measured]
            axes.plot(names, rates, marker="o", label=str(at.prediction.size))
        axes.set_yscale("log")
        axes.set_ylabel("multiply-adds a cycle and compute unit")
        axes.set_title(f"A product of matrices in the model of an {chip}")
        axes.tick_params(axis="x", rotation=45)
        axes.grid(visible=True, axis="y", alpha=0.4)
        axes.legend()

    return figure.svg("gpu_gemm", (9, 5), draw)
