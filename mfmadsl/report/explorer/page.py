"""The explorer's page, put together from a template, a style, scripts and the data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from mfmadsl.language import library, library_files
from mfmadsl.language.cache import cached
from mfmadsl.model import Intrinsic, Microkernel
from mfmadsl.report.explorer.data import Exports, explorer_data, exports_of
from mfmadsl.report.html import page
from mfmadsl.version import __version__

_FOLDER = Path(__file__).parent
_SCRIPTS = ("layout.js", "state.js", "table.js", "pane.js", "explorer.js")


def library_exports() -> dict[str, dict[str, dict[str, str]]]:
    """The exports of the whole library, kept between processes."""
    sources = [*library_files(), *sorted((_FOLDER.parent.parent / "export").rglob("*.*"))]
    return cached(
        "exports", [each for each in sources if each.suffix in (".mfma", ".py", ".json")],
        lambda: {name: exports_of(each) for name, each in library().items()},
    )  # fmt: skip


def explorer_page(
    intrinsics: Iterable[Intrinsic],
    microkernels: Iterable[Microkernel],
    texts: Mapping[str, str],
    exports: Mapping[str, Exports] = MappingProxyType({}),
) -> str:
    """HTML that needs no server, no network and no other file.

    `texts` are the entries as they are written, by name; `exports` those that are known already,
    such as `library_exports`.
    """
    found = explorer_data(intrinsics, microkernels, texts, exports)
    data = json.dumps(found, separators=(",", ":"))
    return page(
        "explorer.html.jinja",
        version=__version__,
        style=(_FOLDER / "explorer.css").read_text("utf-8"),
        script="\n".join((_FOLDER / name).read_text("utf-8") for name in _SCRIPTS),
        data=data.replace("<", "\\u003c"),  # no text of an entry ends the script that holds it
    )
