"""Text to syntax tree, with every syntax error of a file rather than the first.

A file is cut into items before lark sees it: the words that begin items are reserved, so that the
cuts are exact and a broken item cannot spoil the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from itertools import pairwise

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken
from lark import __version__ as version
from lark.exceptions import UnexpectedInput

from mfmadsl.argument import clipped
from mfmadsl.language.cache import cached
from mfmadsl.language.diagnostic import (
    MAXIMUM_MISTAKES,
    Diagnostic,
    Source,
    Span,
    stopped,
)
from mfmadsl.language.syntax import ENTRY_WORDS, Item
from mfmadsl.language.tree import TreeBuilder
from mfmadsl.nearest import did_you_mean
from mfmadsl.resources import resource_folder

_MAXIMUM_OPERATORS = 64
_MAXIMUM_DIGITS = 9
_LONGEST_NAME = 128  # of the library's the longest has 38; a file system takes 255
_MOST_WORDS = 1000  # of the library's items the longest has 197

_LANDMARK = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<string>\"[^\"\n]*\")"
    rf"|\b(?P<keyword>use|layout|{'|'.join(ENTRY_WORDS)})\b"
)
_SETTING = re.compile(r"([A-Za-z_]\w*)\s*=\s*\Z")
_DIMENSIONS = ("m", "n", "k")
_SIZED = re.compile(
    r"//[^\n]*|\"[^\"\n]*\"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[0-9]+)|(?P<operator>[-+*/%])|(?P<separator>[=,{}\[\]])"
)


def parse(source: Source) -> tuple[list[Item], list[Diagnostic]]:
    """The well-formed items of a text, and a diagnostic for each of the others."""
    items: list[Item] = []
    diagnostics: list[Diagnostic] = []
    pieces = list(item_spans(source.text))
    for position, (start, end) in enumerate(pieces):
        if len(diagnostics) == MAXIMUM_MISTAKES:
            diagnostics.append(stopped(Span(source, start, start), len(pieces) - position))
            break
        result = _parse_item(source, start, end)
        if isinstance(result, Diagnostic):
            diagnostics.append(result)
        elif result is not None:
            items.append(result)
    return items, diagnostics


def item_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each item with the comments before it; the first piece may be no item."""
    cuts = [0]
    comments, comments_end = 0, -1  # the run of comments that may belong to the next item
    for landmark in _LANDMARK.finditer(text):
        attached = comments_end >= 0 and not text[comments_end : landmark.start()].strip()
        if landmark.lastgroup == "comment":
            comments = comments if attached else landmark.start()
            comments_end = landmark.end()
            continue
        if landmark.lastgroup == "keyword":
            cuts.append(comments if attached else landmark.start())
        comments_end = -1
    cuts.append(len(text))
    return ((a, b) for a, b in pairwise(cuts) if text[a:b].strip())


def _parse_item(source: Source, start: int, end: int) -> Item | Diagnostic | None:
    text = source.text[start:end]
    too_large = _too_large(source, start, end)
    if too_large is not None:
        return too_large
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as error:
        if not re.sub(r"//(?!/)[^\n]*", "", text).strip():
            return None  # nothing but comments
        return _explain(source, start, end, error)
    glued = _glued(source, start, end, {t.start_pos or 0 for t in tree.scan_values(_is_name)})
    if glued is not None:
        return glued
    item = TreeBuilder(source, start).transform(tree)
    assert isinstance(item, Item)
    return item


def _is_name(token: object) -> bool:
    return isinstance(token, Token) and token.type == "NAME"


def _glued(source: Source, start: int, end: int, names: set[int]) -> Diagnostic | None:
    """A mistake where a keyword stands at a name, a number or another keyword without a space.

    The grammar's lexer knows no ends of words: where only a keyword can follow it takes the letters
    of one. `names` are where names begin in the item.
    """
    for token in _SIZED.finditer(source.text, start, end):
        if token.lastgroup != "name" or token.start() - start in names:
            continue
        word = token.group()
        if word not in _keywords():
            keyword = max(filter(word.startswith, _keywords()), key=len)
            span = Span(source, token.start(), token.end())
            hint = f"write a space after `{keyword}`"
            return Diagnostic("syntax", f"unexpected `{clipped(word)}`", span, hint)
    return None


@cache
def _keywords() -> frozenset[str]:
    patterns = (t.pattern for t in _lark().terminals if t.pattern.type == "str")
    return frozenset(str(p.value) for p in patterns if p.value.replace("_", "").isalpha())


def _too_large(source: Source, start: int, end: int) -> Diagnostic | None:
    """Refuse what would exhaust the stack or the memory of whatever walks the tree."""
    operators = words = 0
    for token in _SIZED.finditer(source.text, start, end):
        span = Span(source, token.start(), token.end())
        length = token.end() - token.start()
        words += token.lastgroup is not None
        if words > _MOST_WORDS:
            message = f"the item has more than {_MOST_WORDS} words and signs"
            return Diagnostic("size", message, span, "write several items")
        if token.lastgroup == "name" and length > _LONGEST_NAME:
            message = f"the name has {length} letters"
            hint = f"a name has at most {_LONGEST_NAME}"
            return Diagnostic("name", message, span, hint)
        if token.lastgroup == "number" and length > _MAXIMUM_DIGITS:
            setting = _SETTING.search(source.text, max(start, token.start() - 200), token.start())
            what = f"{setting[1]}={token.group()}" if setting else token.group()
            message = f"{clipped(what)} is too large"
            hint = f"a number has at most {_MAXIMUM_DIGITS} digits"
            if setting and setting[1] in _DIMENSIONS:
                hint = f"`{setting[1]}` is the size of one instruction's tile, at most 128"
            return Diagnostic("number", message, span, hint)
        if token.lastgroup == "operator":
            operators += 1
        elif token.lastgroup == "separator":
            operators = 0
        if operators > _MAXIMUM_OPERATORS:
            hint = f"an expression has at most {_MAXIMUM_OPERATORS} operators"
            return Diagnostic("expression", "the expression is too long", span, hint)
    return None


@cache
def _lark() -> Lark:
    path = resource_folder("grammars") / "mfma.lark"

    def tables() -> bytes:
        grammar = path.read_text(encoding="utf-8")
        saved = BytesIO()
        Lark(grammar, parser="lalr", start="item", propagate_positions=True).save(saved)
        return saved.getvalue()

    return Lark.load(BytesIO(cached(f"grammar-lark{version}", [path], tables)))


def _explain(source: Source, start: int, end: int, error: UnexpectedInput) -> Diagnostic:
    if isinstance(error, UnexpectedCharacters):
        at = start + (error.pos_in_stream or 0)
        span = Span(source, at, at + 1)
        return Diagnostic(
            "character",
            f"unexpected character {source.text[at]!r}",
            span,
            _expectation(error.allowed or set()),
        )
    assert isinstance(error, UnexpectedToken)
    token = error.token
    expected = error.accepts or error.expected
    if token.type == "$END":
        return _unfinished(source, start, end, expected)
    at = start + (token.start_pos or 0)
    hint = _expectation(expected)
    spelled = [_spelling(t) for t in expected]
    keywords = [w.strip("`") for w in spelled if w.strip("`").isalpha() and w.startswith("`")]
    if token.type == "NAME" and keywords:
        hint = did_you_mean(str(token), keywords)
    line_start = source.text.rfind("\n", 0, at) + 1
    if "//" in source.text[line_start:at].split("\n")[0] or _swallowed_by_comment(source, at):
        hint = "`//` begins a comment; division, which rounds down, is written `/`"
    return Diagnostic("syntax", f"unexpected `{token}`", Span(source, at, at + len(token)), hint)


def _swallowed_by_comment(source: Source, at: int) -> bool:
    """Whether the line before the culprit ends in `a // b`, which Python would divide."""
    before = source.text[:at].rstrip()
    last_line = before[before.rfind("\n") + 1 :]
    return bool(re.search(r"[\w)]\s*//\s*[\w(]", last_line)) and "=" in last_line


def _unfinished(source: Source, start: int, end: int, expected: set[str]) -> Diagnostic:
    text = source.text[start:end]
    code = re.sub(r"//[^\n]*", lambda m: " " * len(m.group()), text)
    opened = code.find("{")
    if "RBRACE" in expected and opened >= 0:
        at = start + opened
        if _swallowed_by_comment(source, start + len(text)):
            hint = "`//` begins a comment; division, which rounds down, is written `/`"
        else:
            hint = "add the closing `}`"
        return Diagnostic("brace", "this `{` is never closed", Span(source, at, at + 1), hint)
    last = start + max(0, len(code.rstrip()) - 1)
    if not code.strip():
        last = start + max(0, len(text.rstrip()) - 1)
        return Diagnostic(
            "syntax",
            "a doc comment with nothing to document",
            Span(source, last, last + 1),
            "`///` stands before a layout or an entry; an ordinary comment begins with `//`",
        )
    return Diagnostic(
        "syntax", "the text ends too early", Span(source, last, last + 1), _expectation(expected)
    )


def _expectation(terminals: set[str]) -> str:
    words = sorted({_spelling(t) for t in terminals} - {""})
    return f"expected {' or '.join(words)}" if words else ""


@cache
def _spelling(terminal: str) -> str:
    spoken = {"NAME": "a name", "INTEGER": "a number", "STRING": "a string", "$END": "the end"}
    spoken |= {"SUM": "`+`", "PRODUCT": "`*`", "SLASH": "`/`", "DOC": ""}
    if terminal in spoken:
        return spoken[terminal]
    for definition in _lark().terminals:
        if definition.name == terminal and definition.pattern.type == "str":
            return f"`{definition.pattern.value}`"
    return ""
