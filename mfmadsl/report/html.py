"""Pages that need nothing else: no server, no network, no file beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).parent / "templates"


def page(template: str, **values: Any) -> str:
    """A template of `report/templates`; values are data, of which no character means markup."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # who lists needs none

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(template).render(values)
