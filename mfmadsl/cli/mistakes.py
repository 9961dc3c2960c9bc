"""What docs/diagnostics.md says about each code of a mistake."""

from __future__ import annotations

import re

from mfmadsl.resources import resource_folder

_SECTION = re.compile(r"^## `([a-z-]+)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    """The section of each code, in the order of docs/diagnostics.md."""
    page = (resource_folder("docs") / "diagnostics.md").read_text(encoding="utf-8")
    return {found[1]: found[2].strip() for found in _SECTION.finditer(page)}
