"""A page for a look at an entry: what it says, and its pictures."""

from __future__ import annotations

from mfmadsl.report.html import page
from mfmadsl.report.picture.look import Look, grids_of
from mfmadsl.report.picture.svg import svg
from mfmadsl.report.summary import summary_of


def look_page(look: Look) -> str:
    """HTML that needs nothing else. Raises ArgumentError for what the entry has not."""
    return page(
        "look.html.jinja",
        name=look.entry.name,
        summary=summary_of(look.entry),
        pictures=[svg([grid]) for grid in grids_of(look)],
    )
