"""Text to syntax tree, with every syntax error of a file rather than the first.

A file is cut into items before lark sees it: the words that begin items are reserved, so that the
cuts are exact and a broken item cannot spoil the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from itertools import pairwise
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken
from lark import __version__ as version
from lark.exceptions import UnexpectedInput
from lark.tree import Meta
from lark.visitors import v_args

from mfmadsl.argument import clipped
from mfmadsl.language.cache import cached
from mfmadsl.language.diagnostic import (
    MAXIMUM_MISTAKES,
    Diagnostic,
    Source,
    Span,
    did_you_mean,
    stopped,
)
from mfmadsl.language.syntax import (
    AcceleratorItem,
    Argument,
    Binary,
    BufferField,
    CallField,
    Expression,
    Field,
    FormulaField,
    FragmentItem,
    Index,
    IntrinsicItem,
    Item,
    LayoutItem,
    MicrokernelField,
    MicrokernelItem,
    Name,
    NamesField,
    Number,
    OperandField,
    Placement,
    ReadField,
    ReadItem,
    Rule,
    Setting,
    SettingsField,
    Use,
)
from mfmadsl.resources import resource_folder

_MAXIMUM_OPERATORS = 64
_MAXIMUM_DIGITS = 9
_LONGEST_NAME = 128  # of the library's the longest has 38; a file system takes 255
_MOST_WORDS = 1000  # of the library's items the longest has 134

_LANDMARK = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<string>\"[^\"\n]*\")"
    r"|\b(?P<keyword>use|layout|intrinsic|microkernel|read|fragment|accelerator)\b"
)
_WORD = re.compile(r"[a-z_]+")
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
    pieces = list(_pieces(source.text))
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


def _pieces(text: str) -> Iterator[tuple[int, int]]:
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
    item = _Builder(source, start).transform(tree)
    assert isinstance(item, Item)
    return item


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


class _Builder(Transformer[Token, Item]):
    """Makes the syntax tree; positions become spans of the whole source."""

    def __init__(self, source: Source, offset: int) -> None:
        super().__init__(visit_tokens=True)
        self._source = source
        self._offset = offset

    def _span(self, meta: Meta) -> Span:
        return Span(self._source, meta.start_pos + self._offset, meta.end_pos + self._offset)

    def _token_span(self, token: Token) -> Span:
        start = (token.start_pos or 0) + self._offset
        return Span(self._source, start, start + len(token))

    def NAME(self, token: Token) -> Name:
        return Name(str(token), self._token_span(token))

    def INTEGER(self, token: Token) -> Number:
        return Number(int(token), self._token_span(token))

    def item(self, children: list[Item]) -> Item:
        return children[0]

    def use(self, children: list[Name]) -> Use:
        return Use(children[0])

    def layout(self, children: list[Token | Name | Rule]) -> LayoutItem:
        names = [c for c in children if isinstance(c, Name)]
        rules = tuple(c for c in children if isinstance(c, Rule))
        return LayoutItem(names[0], _doc(children), tuple(names[1:]), rules)

    def rule(self, children: list[Name]) -> Rule:
        return Rule(children[0], children[1])

    def intrinsic(self, children: list[Token | Name | Field]) -> IntrinsicItem:
        return IntrinsicItem(*_body(children))

    def microkernel(self, children: list[Token | Name | MicrokernelField]) -> MicrokernelItem:
        return MicrokernelItem(*_body(children))

    def read(self, children: list[Token | Name | ReadField]) -> ReadItem:
        return ReadItem(*_body(children))

    @v_args(meta=True)
    def formula(self, meta: Meta, children: list[Expression]) -> FormulaField:
        return FormulaField(self._keyword(meta), children[0])

    def fragment(self, children: list[Token | Name | OperandField | SettingsField]) -> FragmentItem:
        return FragmentItem(*_body(children))

    def accelerator(
        self, children: list[Token | Name | BufferField | SettingsField | CallField]
    ) -> AcceleratorItem:
        return AcceleratorItem(*_body(children))

    def buffer(self, children: list[Name | Index | Token]) -> BufferField:
        name, dtype, row, column, scope = children
        assert isinstance(name, Name)
        assert isinstance(dtype, Name)
        assert isinstance(row, Index)
        assert isinstance(column, Index)
        assert isinstance(scope, Token)
        return BufferField(name, dtype, (row, column), scope[1:-1], self._token_span(scope))

    @v_args(meta=True)
    def settings(self, meta: Meta, children: list[Setting]) -> SettingsField:
        return SettingsField(self._keyword(meta), tuple(children))

    @v_args(meta=True)
    def text(self, meta: Meta, children: list[Token]) -> CallField:
        string, *unknown = children
        span = self._token_span(string)
        return CallField(self._keyword(meta), string[1:-1], span, bool(unknown))

    @v_args(meta=True)
    def names(self, meta: Meta, children: list[Name]) -> NamesField:
        return NamesField(self._keyword(meta), tuple(children))

    @v_args(meta=True)
    def index(self, meta: Meta, children: list[Name | Token | Number]) -> Index:
        name, *group = children
        assert isinstance(name, Name)
        divisor = group[-1] if group else None
        value = divisor.value if isinstance(divisor, Number) else 1
        return Index(name, value, self._span(meta))

    @v_args(meta=True)
    def operand(self, meta: Meta, children: list[Name | Index | Placement | Token]) -> OperandField:
        name, *types = [child for child in children if isinstance(child, Name)]
        row, column = [child for child in children if isinstance(child, Index)]
        (placement,) = [child for child in children if isinstance(child, Placement)]
        broadcast = isinstance(children[-1], Token)
        indices = row, column
        return OperandField(name, tuple(types), indices, placement, self._span(meta), broadcast)

    def held(self, children: list[Token]) -> Name:
        return self.operand_name(children)

    def matrix(self, children: list[Token]) -> Name:
        return self.operand_name(children)

    def operand_name(self, children: list[Token]) -> Name:
        return Name(str(children[0]), self._token_span(children[0]))

    @v_args(meta=True)
    def placement(self, meta: Meta, children: list[Name | Argument]) -> Placement:
        layout = children[0]
        assert isinstance(layout, Name)
        arguments = tuple(c for c in children[1:] if isinstance(c, Argument))
        return Placement(layout, arguments, self._span(meta))

    def argument(self, children: list[Expression]) -> Argument:
        if len(children) == 1:
            return Argument(None, children[0])
        keyword = children[0]
        assert isinstance(keyword, Name)
        return Argument(keyword, children[1])

    def setting(self, children: list[Name | Number]) -> Setting:
        name, value = children
        assert isinstance(name, Name)
        assert isinstance(value, Number)
        return Setting(name, value)

    def number(self, children: list[Number]) -> Number:
        return children[0]

    def name(self, children: list[Name]) -> Name:
        return children[0]

    @v_args(meta=True)
    def binary(self, meta: Meta, children: list[Token | Expression]) -> Binary:
        left, operator, right = children
        assert not isinstance(left, Token)
        assert not isinstance(right, Token)
        return Binary(str(operator), left, right, self._span(meta))

    def _keyword(self, meta: Meta) -> Name:
        """The word that a field begins with, which is no part of its tree."""
        start = meta.start_pos + self._offset
        word = _WORD.match(self._source.text, start)
        assert word is not None
        return Name(word[0], Span(self._source, start, word.end()))


def _body(children: Sequence[Any]) -> tuple[Name, str, tuple[Any, ...]]:
    """The name of an entry, its documentation and its fields."""
    (name,) = (c for c in children if isinstance(c, Name))
    fields = tuple(c for c in children if not isinstance(c, Name | Token))
    return name, _doc(children), fields


def _doc(children: Sequence[object]) -> str:
    lines = [str(c)[3:].strip() for c in children if isinstance(c, Token) and c.type == "DOC"]
    return "\n".join(lines).strip()
