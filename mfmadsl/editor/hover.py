"""What an editor shows of the word under the mouse, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mfmadsl.editor.element_type import type_summary
from mfmadsl.editor.entry import entry_summary, operand_summary
from mfmadsl.editor.keywords import FIELDS, ITEMS, RULES, SHAPES
from mfmadsl.editor.layouts import definition_text, home, layouts_of
from mfmadsl.editor.llvm_intrinsic import call_summary
from mfmadsl.editor.scan import Expected, Item, Token, expected_at, word_at
from mfmadsl.language import Checked
from mfmadsl.language.kind import Described
from mfmadsl.model import ARCHITECTURES

_OPERANDS = ("a", "b", "c", "scale_a", "scale_b", "holds")


class Hover(NamedTuple):
    """Markdown, and the characters that it is about."""

    text: str
    start: int
    end: int


def hover(checked: Checked, offset: int) -> Hover | None:
    """What is known of the word at a place of the text; None if nothing is."""
    word = word_at(checked.source.text, offset)
    if word is None:
        return None
    item, role = expected_at(checked.source.text, word.start)
    told = _told(checked, word, item, role)
    return Hover(told, word.start, word.end) if told else None


def _told(checked: Checked, word: Token, item: Item | None, expected: Expected) -> str | None:
    if item is None or word.text in ITEMS:
        return _said(ITEMS, word.text)
    kind, role, field = item.keyword.text, expected.role, expected.field
    if expected.begins and word.text in FIELDS.get(kind, {}):
        return _field(checked, item, word, kind)
    if role == "name":
        return _name(checked, word, kind)
    if role == "use":
        paths = [used.path for used in checked.uses if used.name.span.start == word.start]
        return f"`{paths[0]}`" if paths and paths[0] else None
    if role == "type":
        told = type_summary(word.text)
        return f"`{word.text}`: {told}" if told else None
    if role == "layout":
        return _layout(checked, word.text)
    if role == "string" and kind != "accelerator":
        return call_summary(word.text.strip('"'))
    if kind == "layout" and role in ("rule", "expression"):
        return _said(RULES, word.text)
    if role in ("setting", "word") and field is not None:
        return _word(word.text, field.keyword.text, kind)
    return None


def _word(word: str, field: str, kind: str) -> str | None:
    if field == "shape":
        return _said(SHAPES[kind], word)
    if field in ("cycles", "narrow_cycles", "chips") and word in ARCHITECTURES:
        chip = ARCHITECTURES[word]
        return f"`{word}`: {chip.family}, waves of {chip.wave_size} lanes"
    return None


def _name(checked: Checked, word: Token, kind: str) -> str | None:
    """An entry's summary, or a layout's definition."""
    if kind == "layout":
        return _layout(checked, word.text)
    described = _described(checked, word)
    if described:
        return _fenced(entry_summary(described))
    return f"{kind} `{word.text}`, of which nothing is known until its mistakes are mended"


def _field(checked: Checked, item: Item, word: Token, kind: str) -> str:
    """What the field says; of an operand, where its elements lie."""
    told = f"`{word.text}`: {FIELDS[kind][word.text]}"
    if word.text in _OPERANDS and item.name is not None:
        own = [f for f in item.fields if f.keyword == word]
        types = {t.text for f in own for t in f.tokens}
        described = _described(checked, item.name)
        placed = operand_summary(described, word.text, types)
        told += f"\n\n{_fenced(placed)}" if placed else ""
    return told


def _layout(checked: Checked, name: str) -> str | None:
    layout = layouts_of(checked).get(name)
    if layout is None:
        return None
    doc = f"\n\n{layout.doc}" if layout.doc else ""
    return f"{_fenced(definition_text(layout), 'mfma')}{doc}\n\nIn {home(layout)}"


def _described(checked: Checked, name: Token) -> tuple[Described, ...]:
    """What the entry of that name describes; nothing if it has mistakes."""
    found = (models for item, models in checked.described if item.name.span.start == name.start)
    return next(found, ())


def _said(lines: Mapping[str, str], word: str) -> str | None:
    return f"`{word}`: {lines[word]}" if word in lines else None


def _fenced(text: str, language: str = "text") -> str:
    """A block of code; a comment in it may have a fence itself."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
