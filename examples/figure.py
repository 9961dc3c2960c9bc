"""A ladder's picture as SVG, the same bytes each time."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


class NoPlotError(Exception):
    """What there is to install."""


def svg(name: str, size: tuple[float, float], draw: Callable[[Any], None]) -> bytes:
    """What `draw` makes of a matplotlib figure of so many inches. Raises NoPlotError without
    matplotlib; `name` is the picture's own, from which its elements take theirs."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise NoPlotError(
            "no plot: it takes matplotlib (pip install 'matplotlib>=3.9,<4')"
        ) from None
    from matplotlib.figure import Figure

    # Names of elements from a fixed salt, no date, fonts as text.
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()
