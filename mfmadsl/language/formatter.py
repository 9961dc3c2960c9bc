"""`.mfma` text as it should look: one field a line, in columns, comments where they were."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mfmadsl.language.diagnostic import LanguageError, Source
from mfmadsl.language.parser import parse
from mfmadsl.language.syntax import (
    AcceleratorItem,
    BufferField,
    FragmentItem,
    IntrinsicItem,
    Item,
    LayoutItem,
    MicrokernelItem,
    OperandField,
    ReadItem,
    Use,
)

_INDENT = "  "
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<string>\"[^\"\n]*\")|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[^\s]"
)


class _Token(NamedTuple):
    text: str
    start: int
    comment: bool
    first: bool  # on its line


class _Line(NamedTuple):
    """One field or rule; `before` are the comments above it, `after` the one beside it."""

    before: list[str]
    cells: list[str]
    after: str


def format_source(source: Source) -> str:
    """The text in the canonical form, which is its own canonical form.

    Raises LanguageError if the text is not well-formed.
    """
    items, diagnostics = parse(source)
    if diagnostics:
        raise LanguageError(diagnostics)
    tokens = list(_tokens(source.text))
    numbers = {token.start: number for number, token in enumerate(tokens)}
    blocks: list[tuple[bool, list[str]]] = []  # (whether it is a `use`, its lines)
    position = 0
    for item in items:
        start, end = _extent(item, tokens, numbers[item.name.span.start])
        attached, apart = _attached(source.text, tokens[position:start], tokens[start].start)
        lines = attached + _item(item, tokens[start:end])
        position = end
        after = ""
        if position < len(tokens) and tokens[position].comment and not tokens[position].first:
            after = tokens[position].text.rstrip()
            position += 1
        blocks += [(False, paragraph) for paragraph in apart]
        lines[-1] += f"{_INDENT}{after}" if after else ""
        blocks.append((isinstance(item, Use), lines))
    rest = [t for t in tokens[position:] if t.comment]
    blocks += [(False, paragraph) for paragraph in _paragraphs(source.text, rest)]
    return _joined(blocks)


def _joined(blocks: list[tuple[bool, list[str]]]) -> str:
    text = ""
    previous_use = False
    for is_use, lines in blocks:
        adjacent = is_use and previous_use and not lines[0].startswith("//")
        text += "" if not text else "\n" if adjacent else "\n\n"
        text += "\n".join(lines)
        previous_use = is_use
    return text + "\n" if text else ""


def _tokens(text: str) -> Iterator[_Token]:
    previous = -1  # the end of the last token
    for match in _TOKEN.finditer(text):
        first = previous < 0 or "\n" in text[previous : match.start()]
        previous = match.end()
        yield _Token(match.group(), match.start(), match.lastgroup == "comment", first)


def _extent(item: Item, tokens: list[_Token], named: int) -> tuple[int, int]:
    """Where an item's tokens start, its keyword first, and where they end; `named` is its name."""
    if isinstance(item, Use):
        return named - 1, named + 1
    start = next(i for i in range(named - 1, -1, -1) if not tokens[i].comment)
    end = next(i for i in range(named, len(tokens)) if tokens[i].text == "}")
    return start, end + 1


def _attached(text: str, comments: list[_Token], item: int) -> tuple[list[str], list[list[str]]]:
    """The comments right above an item, and the paragraphs of others that stand apart before it."""
    paragraphs = _paragraphs(text, comments)
    if paragraphs:
        last = comments[-1]
        if text[last.start + len(last.text) : item].count("\n") == 1:
            return paragraphs[-1], paragraphs[:-1]
    return [], paragraphs


def _paragraphs(text: str, comments: list[_Token]) -> list[list[str]]:
    """Comments, cut where there are empty lines between them."""
    found: list[list[str]] = []
    end = -1
    for comment in comments:
        if end < 0 or text[end : comment.start].count("\n") > 1:
            found.append([])
        found[-1].append(comment.text.rstrip())
        end = comment.start + len(comment.text)
    return found


def _item(item: Item, tokens: list[_Token]) -> list[str]:
    if isinstance(item, Use):
        return [f"use {item.name.text}"]
    opening = next(i for i, t in enumerate(tokens) if t.text == "{")
    head = _spaced([t.text for t in tokens[:opening] if not t.comment])
    stray = [t.text.rstrip() for t in tokens[:opening] if t.comment]
    parts = item.rules if isinstance(item, LayoutItem) else item.fields
    starts = {part.name.span.start for part in parts}
    lines, last = _lines(item, tokens[opening + 1 : -1], starts)
    lines[:0] = [_Line(stray, [], "")] if stray else []
    return [f"{head} {{", *_columns(lines, isinstance(item, LayoutItem)), *last, "}"]


def _lines(
    item: LayoutItem | IntrinsicItem | MicrokernelItem | ReadItem | FragmentItem | AcceleratorItem,
    tokens: list[_Token],
    starts: set[int],
) -> tuple[list[_Line], list[str]]:
    """The parts of a body, and the comments after the last one."""
    operands = {
        field.name.span.start
        for field in getattr(item, "fields", ())
        if isinstance(field, OperandField | BufferField)
    }
    lines: list[_Line] = []
    before: list[str] = []
    words: list[str] = []
    operand = False
    after = ""

    def finish() -> None:
        nonlocal before, words, after
        if words:
            rule = isinstance(item, LayoutItem)
            lines.append(_Line(before, _cells(words, rule, operand), after))
            before, words, after = [], [], ""

    for position, token in enumerate(tokens):
        if token.start in starts:
            finish()
            operand = token.start in operands
        if not token.comment:
            if after:  # a comment in the middle of a field moves above it
                before, after = [*before, after], ""
            words.append(token.text)
        elif token.first or not words:
            if words and _ends(tokens, position, starts):
                finish()
            before.append(token.text.rstrip())
        else:
            after = f"{after} {token.text.rstrip()}".strip()
    finish()
    return lines, [_INDENT + comment for comment in before]


def _ends(tokens: list[_Token], comment: int, starts: set[int]) -> bool:
    """Whether no more of the current field follows the comment of that position."""
    following = (tokens[i] for i in range(comment + 1, len(tokens)) if not tokens[i].comment)
    after = next(following, None)
    return after is None or after.start in starts


def _cells(words: list[str], rule: bool, operand: bool) -> list[str]:
    """The columns of a line: the keyword, and what follows it; an operand's place apart."""
    if rule:
        return [words[0], "=", _spaced(words[2:])]
    placed = [i for i, word in enumerate(words) if word in ("at", "in")]
    if operand and placed:
        at = placed[-1]
        last = len(words) - (words[-1] == "broadcast")
        place = [_spaced(words[at + 1 : last]), *words[last:]]
        return [words[0], _spaced(words[1:at]), words[at], _INDENT.join(place)]
    return [words[0], _spaced(words[1:])]


def _columns(lines: Iterable[_Line], layout: bool) -> list[str]:
    """Lines with their cells below each other."""
    lines = list(lines)
    keyword = max((len(line.cells[0]) for line in lines if line.cells), default=0)
    placed = max((len(line.cells[1]) for line in lines if len(line.cells) == 4), default=0)
    gap = " " if layout else _INDENT
    found = []
    for line in lines:
        found += [_INDENT + comment for comment in line.before]
        if not line.cells:
            continue
        text = _INDENT + line.cells[0].ljust(keyword) + gap
        if len(line.cells) == 4:
            text += line.cells[1].ljust(placed) + f"{gap}{line.cells[2]}{gap}" + line.cells[3]
        else:
            text += gap.join(line.cells[1:])
        found.append(f"{text.rstrip()}{_INDENT}{line.after}" if line.after else text.rstrip())
    return found


def _spaced(words: list[str]) -> str:
    """Words with one space between them, but for brackets, commas and `key=value`."""
    text = ""
    for i, word in enumerate(words):
        previous = words[i - 1] if i else ""
        named = previous[-1:].isalnum() or previous[-1:] == "_"
        tight = (
            not text or word in ",)]=" or previous in ("(", "[", "=") or (word in "([" and named)
        )
        text += word if tight else f" {word}"
    return text
