"""A text as words in items and fields: what is known of one that is being written, too.

The parser knows well-formed items only. An editor asks most while an item is not: so this goes by
the words that begin items and fields, and says what the grammar expects at any place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from mfmadsl.editor.keywords import FIELDS, ITEMS

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<string>\"[^\"\n]*\"?)|(?P<number>\d+)|(?P<word>\w+)|(?P<sign>\S)"
)
_OPERATORS = set("+-*/%=,")
_OPERANDS = ("a", "b", "c", "scale_a", "scale_b", "holds")
_FORMULAS = ("from_lane", "from_element", "expression")


class Token(NamedTuple):
    """A word, number, string, sign or comment, with its place in the text."""

    kind: str
    text: str
    start: int
    end: int


class Field(NamedTuple):
    """A field of an entry or a rule of a layout: its keyword, and what follows it."""

    keyword: Token
    tokens: tuple[Token, ...]


class Item(NamedTuple):
    """An item from its keyword to what begins the next one; comments are left out."""

    keyword: Token
    tokens: tuple[Token, ...]

    @property
    def name(self) -> Token | None:
        """The word behind the keyword, if there is one."""
        named = [t for t in self.tokens[1:2] if t.kind == "word"]
        return named[0] if named else None

    @property
    def end(self) -> int:
        """One past its `}`; past its last word where that is missing."""
        closing = next((t for t in self.tokens if t.text == "}"), self.tokens[-1])
        return self.tokens[1].end if self.keyword.text == "use" and self.name else closing.end

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields, or the rules of a layout."""
        return _fields(self)


Role = Literal[
    "item", "use", "name", "parameter", "field", "type", "index", "at", "layout", "argument",
    "setting", "string", "word", "expression", "rule", "nothing",
]  # fmt: skip
"""What a word is for: `setting` and `word` are those of the field, such as a chip in `cycles`."""


class Expected(NamedTuple):
    """What the next word of an item may be, and the field that it would belong to.

    `begins` is whether it may be the keyword of another field.
    """

    role: Role
    field: Field | None = None
    begins: bool = False


@lru_cache(maxsize=16)
def tokens(text: str) -> tuple[Token, ...]:
    """The words, numbers, strings, signs and comments of a text; a string ends with its line."""
    return tuple(
        Token(str(found.lastgroup), found.group(), found.start(), found.end())
        for found in _TOKEN.finditer(text)
    )


@lru_cache(maxsize=16)
def items(text: str) -> tuple[Item, ...]:
    """The items of a text, well-formed or not, as the parser cuts it."""
    said = [token for token in tokens(text) if token.kind != "comment"]
    cuts = [i for i, token in enumerate(said) if token.kind == "word" and token.text in ITEMS]
    return tuple(Item(said[a], tuple(said[a:b])) for a, b in pairwise([*cuts, len(said)]))


def item_at(text: str, offset: int) -> Item | None:
    """The item that a place is in, or after."""
    before = [item for item in items(text) if item.keyword.start <= offset]
    return before[-1] if before else None


def word_at(text: str, offset: int) -> Token | None:
    """The word or the string that a place is in, or at the end of; none within a comment."""
    touched = [t for t in tokens(text) if t.start <= offset <= t.end]
    inside = [t for t in touched if t.kind in ("comment", "string") and t.start < offset]
    if inside:
        return inside[0] if inside[0].kind == "string" else None
    words = [t for t in touched if t.kind in ("word", "string")]
    return words[-1] if words else None


def in_comment(text: str, offset: int) -> bool:
    """Whether what is written at a place is part of a comment, to which its end belongs."""
    return any(t.kind == "comment" and t.start < offset <= t.end for t in tokens(text))


def expected_at(text: str, offset: int) -> tuple[Item | None, Expected]:
    """The item that a word which begins at a place belongs to, and what it would be there."""
    item = item_at(text, offset - 1)
    if item is None:
        return None, Expected("item")
    found = expected(item.keyword.text, [t for t in item.tokens[1:] if t.start < offset])
    return (None if found.role == "item" else item), found


def expected(keyword: str, before: Sequence[Token]) -> Expected:
    """What may follow `before` in an item that begins with this keyword."""
    if not before:
        return Expected("use" if keyword == "use" else "name")
    if keyword == "use":
        return Expected("item")
    opening = next((i for i, t in enumerate(before) if t.text == "{"), None)
    if opening is None:
        inside = keyword == "layout" and any(t.text == "(" for t in before)
        return Expected("parameter" if inside else "nothing")
    if any(t.text == "}" for t in before):
        return Expected("item")
    fields = _divided(keyword, before[opening + 1 :])
    if not fields:
        return Expected("rule" if keyword == "layout" else "field", begins=True)
    return _within(keyword, fields[-1])


def _fields(item: Item) -> tuple[Field, ...]:
    opening = next((i for i, t in enumerate(item.tokens) if t.text == "{"), len(item.tokens))
    body = item.tokens[opening + 1 :]
    closing = next((i for i, t in enumerate(body) if t.text == "}"), len(body))
    return _divided(item.keyword.text, body[:closing])


def _divided(keyword: str, body: Sequence[Token]) -> tuple[Field, ...]:
    """The fields of a body, by the words that begin them; what is before the first is dropped."""
    starts = []
    for i, token in enumerate(body):
        if token.kind == "word" and _begins(keyword, body, i):
            starts.append(i)
    return tuple(Field(body[a], tuple(body[a + 1 : b])) for a, b in pairwise([*starts, len(body)]))


def _begins(keyword: str, body: Sequence[Token], i: int) -> bool:
    """Whether the word `i` of a body begins a field there, or a rule of a layout."""
    if keyword == "layout":
        return i + 1 < len(body) and body[i + 1].text == "="
    if body[i].text not in FIELDS.get(keyword, {}):
        return False
    previous = body[i - 1].text if i else ""
    if previous in _OPERATORS or previous in ("(", "[", "at", "in", *_FORMULAS):
        return False
    return not (i + 1 < len(body) and body[i + 1].text == "=")


def _within(keyword: str, field: Field) -> Expected:
    """What may follow in a field."""
    name, said = field.keyword.text, field.tokens
    last = said[-1].text if said else ""
    if keyword == "layout":
        after = len(said) > 1 and last not in _OPERATORS and last != "("
        return Expected("rule" if after else "expression", field, begins=after)
    if name in _OPERANDS:
        return _within_operand(field)
    if name in ("call", "calls"):
        return Expected("word" if said else "string", field, begins=bool(said))
    if name in _FORMULAS:
        after = bool(said) and last not in _OPERATORS and last != "("
        return Expected("field" if after else "expression", field, begins=after)
    if last == "=":
        return Expected("nothing", field)
    if name in ("shape", "cycles", "narrow_cycles"):
        return Expected("setting", field, begins=bool(said))
    return Expected("word", field, begins=bool(said))


def _within_operand(field: Field) -> Expected:
    texts = [token.text for token in field.tokens]
    if "[" not in texts:
        return Expected("type", field)
    if "]" not in texts:
        return Expected("index", field)
    after = texts[texts.index("]") + 1 :]
    if not after:
        return Expected("at", field)
    if len(after) == 1:
        return Expected("layout" if after[0] == "at" else "string", field)
    if after.count("(") > after.count(")"):
        named = after[-1] in ("(", ",")
        return Expected("argument" if named else "expression", field)
    return Expected("word" if "(" in after else "nothing", field, begins=True)
