"""Where a word is defined."""

from __future__ import annotations

from itertools import pairwise

from mfmadsl.editor.layouts import layouts_of
from mfmadsl.editor.scan import Item, Token, expected_at, word_at
from mfmadsl.language import Checked, Source, Span
from mfmadsl.language.syntax import LayoutItem


def definition(checked: Checked, offset: int) -> Span | None:
    """Where what is named at a place is defined: a layout, the file of a `use`, a parameter.

    The source of the span is called by the path of its file.
    """
    word = word_at(checked.source.text, offset)
    if word is None:
        return None
    item, expected = expected_at(checked.source.text, word.start)
    if item is None:
        return None
    if expected.role == "use":
        paths = [used.path for used in checked.uses if used.name.span.start == word.start]
        return Span(Source(str(paths[0]), ""), 0, 0) if paths and paths[0] else None
    if expected.role == "layout":
        layout = layouts_of(checked).get(word.text)
        return None if layout is None else layout.name.span
    if item.keyword.text == "layout" and expected.role == "expression":
        return _parameter(checked, item, word)
    if expected.role == "argument" and expected.field is not None:
        return _named_argument(checked, expected.field.tokens, word)
    return None


def _parameter(checked: Checked, item: Item, word: Token) -> Span | None:
    """The parameter that a rule names, itself or, in capitals, by its extent."""
    if item.name is None:
        return None
    for token in item.tokens:
        if token.text == "{":
            break
        if token.start > item.name.start and token.text == word.text.lower():
            return Span(checked.source, token.start, token.end)
    return None


def _named_argument(checked: Checked, before: tuple[Token, ...], word: Token) -> Span | None:
    """The parameter of the layout whose name stands before a `=`."""
    if not checked.source.text[word.end :].lstrip().startswith("="):
        return None
    names = [token.text for token, following in pairwise(before) if following.text == "("]
    layout: LayoutItem | None = layouts_of(checked).get(names[0]) if names else None
    parameters = layout.parameters if layout else ()
    return next((p.span for p in parameters if p.text == word.text), None)
