"""Docstrings are plain sentences: only `names` between backticks mean something to Sphinx."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_QUOTED = re.compile(r"`([^`]+)`")
_MARKUP = re.compile(r"([*|\\]|_(?=\W|$))")


def _plain(line: str) -> str:
    pieces = _QUOTED.split(line)
    return "".join(
        f"``{piece}``" if number % 2 else _MARKUP.sub(r"\\\1", piece)
        for number, piece in enumerate(pieces)
    )


def _process(
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    lines[:] = [line if "``" in line else _plain(line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
