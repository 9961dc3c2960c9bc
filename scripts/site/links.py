"""Links to folders: a site has none, so they lead to what the folder has to read, or nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)\)")


def _resolve(app: Sphinx, docname: str, source: list[str]) -> None:
    beside = Path(app.srcdir, docname).parent

    def resolved(link: re.Match[str]) -> str:
        text, target = link.groups()
        if not (beside / target).is_dir():
            return link[0]
        readme = f"{target.rstrip('/')}/README.md"
        return f"[{text}]({readme})" if (beside / readme).is_file() else text

    source[0] = _LINK.sub(resolved, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _resolve)
    return {"parallel_read_safe": True}
