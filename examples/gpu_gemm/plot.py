"""The ladder as a picture: multiply-adds a cycle and compute unit, step by step, as SVG."""

from __future__ import annotations

import io
from collections.abc import Sequence

from examples.gpu_gemm.measure import Measured


class NoPlotError(Exception):
    """What there is to install."""


def svg(measured: Sequence[Measured], chip: str) -> bytes:
    """A line a size, on a scale of powers of ten. Raises NoPlotError without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise NoPlotError(
            "no plot: it takes matplotlib (pip install 'matplotlib>=3.9,<4')"
        ) from None
    from matplotlib.figure import Figure

    # The same bytes each time: names of elements from a fixed salt, no date, fonts as text.
    with mpl.rc_context({"svg.hashsalt": "gpu_gemm", "svg.fonttype": "none"}):
        figure = Figure(figsize=(9, 5), layout="constrained")
        axes = figure.subplots()
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
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()
