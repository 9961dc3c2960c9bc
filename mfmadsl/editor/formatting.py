"""The canonical form of a text in an editor."""

from __future__ import annotations

from mfmadsl.language import LanguageError, Source
from mfmadsl.language.formatter import format_source


def formatted(source: Source) -> str | None:
    """The text as `mfmadsl fmt` writes it; None if it is not well-formed, and stays as it is."""
    try:
        return format_source(source)
    except LanguageError:
        return None
