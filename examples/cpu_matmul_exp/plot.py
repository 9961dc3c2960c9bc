"""The ladder as a picture: GFLOP/s step by step, and NumPy's as lines across, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples import figure
from examples.cpu_matmul_exp.chain import Size
from examples.cpu_matmul_exp.measure import NUMPY, Answer


def svg(answers: Sequence[Answer], size: Size) -> bytes:
    """A line for each number of threads, on a scale of powers of ten.

    Raises NoPlotError without matplotlib.
    """

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        for number, found in enumerate(answers):
            ran = [each for each in found.steps if each.runs]
            rates = [size.gigaflops / each.seconds for each in ran]
            threads = f"{found.threads} thread" + ("s" if found.threads > 1 else "")
            color = f"C{number}"
            axes.plot([each.name for each in ran], rates, marker="o", color=color, label=threads)
            axes.axhline(
                size.gigaflops / found.numpy.seconds, color=color, linestyle="--",
                label=f"{NUMPY}, {threads}",
            )  # fmt: skip
        axes.set_yscale("log")
        axes.set_ylabel("GFLOP/s")
        axes.set_title(f"F = exp(A x B) x C on a CPU, {size}")
        axes.tick_params(axis="x", rotation=45)
        axes.grid(visible=True, axis="y", alpha=0.4)
        axes.legend()

    return figure.svg("cpu_matmul_exp", (9, 5), draw)
