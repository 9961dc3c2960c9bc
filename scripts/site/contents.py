"""The table of contents, which Sphinx has from the lists of links in docs/index.md.

So a page is added by one line, which is a link in the repository as well.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n?)*)", re.MULTILINE)
_ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\.md\)", re.MULTILINE)
_REDIRECT = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>mfmadsl</title>
<meta http-equiv="refresh" content="0; url=docs/index.html">
<a href="docs/index.html">mfmadsl</a>
</html>
"""


def sections(index: str) -> dict[str, list[tuple[str, str]]]:
    """Title and path, from docs/, of the pages of each section of docs/index.md."""
    return {
        found[1]: [(entry[1], entry[2]) for entry in _ENTRY.finditer(found[2])]
        for found in _SECTION.finditer(index)
    }


def _add(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname != app.config.root_doc:
        return
    folder = posixpath.dirname(docname)
    tables = []
    for caption, pages in sections(source[0]).items():
        lines = [
            f"{title} </{posixpath.normpath(posixpath.join(folder, path))}>"
            for title, path in pages
        ]
        tables.append(
            "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *lines, "```"])
        )
    source[0] += "\n" + "\n\n".join(tables) + "\n"


def _redirect(app: Sphinx, exception: Exception | None) -> None:
    """The first page of the site leads to that of the documentation."""
    if exception is None and app.builder.format == "html":
        Path(app.outdir, "index.html").write_text(_REDIRECT, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _add)
    app.connect("build-finished", _redirect)
    return {"parallel_read_safe": True}
