"""The explorer's page, put together from a template, a style, scripts and the data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from mfmadsl import __version__
from mfmadsl.model import Intrinsic, Microkernel
from mfmadsl.report.explorer.data import explorer_data
from mfmadsl.report.html import page

_FOLDER = Path(__file__).parent
_SCRIPTS = ("layout.js", "state.js", "table.js", "pane.js", "explorer.js")


def explorer_page(
    intrinsics: Iterable[Intrinsic],
    microkernels: Iterable[Microkernel],
    texts: Mapping[str, str],
) -> str:
    """HTML that needs no server, no network and no other file.

    `texts` are the entries as they are written, by name.
    """
    data = json.dumps(explorer_data(intrinsics, microkernels, texts), separators=(",", ":"))
    return page(
        "explorer.html.jinja",
        version=__version__,
        style=(_FOLDER / "explorer.css").read_text("utf-8"),
        script="\n".join((_FOLDER / name).read_text("utf-8") for name in _SCRIPTS),
        data=data.replace("<", "\\u003c"),  # no text of an entry ends the script that holds it
    )
