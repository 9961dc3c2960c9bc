"""The layouts that a text may name, and how each is defined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mfmadsl.editor.scan import items
from mfmadsl.language import Checked
from mfmadsl.language.syntax import LayoutItem
from mfmadsl.resources import resource_folder


def layouts_of(checked: Checked) -> Mapping[str, LayoutItem]:
    """By name: those in scope, and those of this text that have mistakes."""
    own = {item.name.text: item for item in checked.items if isinstance(item, LayoutItem)}
    return {**own, **checked.layouts}


def signature(layout: LayoutItem) -> str:
    """A layout's name with its parameters."""
    return f"{layout.name.text}({', '.join(p.text for p in layout.parameters)})"


def definition_text(layout: LayoutItem) -> str:
    """The layout as it is written where it is defined, from its keyword to its `}`."""
    text, name = layout.name.span.source.text, layout.name.span.start
    item = next((i for i in items(text) if i.name is not None and i.name.start == name), None)
    if item is None:
        return signature(layout)
    return text[item.keyword.start : item.end].replace("\r\n", "\n")


def home(layout: LayoutItem) -> str:
    """The file that defines it, as people speak of it."""
    path = Path(layout.name.span.source.name)
    of_library = path.is_relative_to(resource_folder("intrinsics").resolve())
    return f"{path.name} of the library" if of_library else path.name
