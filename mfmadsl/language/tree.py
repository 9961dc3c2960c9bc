"""Lark's tree of an item to the syntax tree, whose positions are those of the whole source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lark import Token, Transformer
from lark.tree import Meta
from lark.visitors import v_args

from mfmadsl.language.diagnostic import Source, Span
from mfmadsl.language.syntax import (
    AcceleratorItem,
    Binary,
    BufferField,
    CallArgument,
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

_WORD = re.compile(r"[a-z_]+")


class TreeBuilder(Transformer[Token, Item]):
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

    def quoted(self, children: list[Token]) -> Name:
        return Name(children[0][1:-1], self._token_span(children[0]))

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
    def placement(self, meta: Meta, children: list[Name | CallArgument]) -> Placement:
        layout = children[0]
        assert isinstance(layout, Name)
        arguments = tuple(c for c in children[1:] if isinstance(c, CallArgument))
        return Placement(layout, arguments, self._span(meta))

    def argument(self, children: list[Expression]) -> CallArgument:
        if len(children) == 1:
            return CallArgument(None, children[0])
        keyword = children[0]
        assert isinstance(keyword, Name)
        return CallArgument(keyword, children[1])

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
