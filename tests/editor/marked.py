"""Texts with a mark at a place, as an editor would have them open."""

from __future__ import annotations

from mfmadsl.language import Checked, Source, check_source

MARK = "¦"


def marked(text: str) -> tuple[Checked, int]:
    """What is known of a text without its mark, and the place of that."""
    offset = text.index(MARK)
    return check_source(Source("spec.mfma", text.replace(MARK, "", 1))), offset


def before(text: str, piece: str, within: int = 0) -> str:
    """The text with a mark so many characters into a piece of it, which is there once."""
    assert text.count(piece) == 1, piece
    at = text.index(piece) + within
    return text[:at] + MARK + text[at:]
