"""The syntax tree: what was written, and where. Nothing here is checked."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.language.diagnostic import Span


@dataclass(frozen=True)
class Name:
    text: str
    span: Span


@dataclass(frozen=True)
class Number:
    value: int
    span: Span


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expression
    right: Expression
    span: Span


Expression = Name | Number | Binary


@dataclass(frozen=True)
class Use:
    name: Name


@dataclass(frozen=True)
class Rule:
    """`lane = ...` or `register = ...` of a layout."""

    name: Name
    expression: Expression


@dataclass(frozen=True)
class LayoutItem:
    name: Name
    doc: str
    parameters: tuple[Name, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Setting:
    name: Name
    value: Number


@dataclass(frozen=True)
class Argument:
    keyword: Name | None
    value: Expression


@dataclass(frozen=True)
class Placement:
    """The use of a layout: `operand(i, k, pack=4)`."""

    layout: Name
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True)
class OperandField:
    name: Name
    type: Name
    indices: tuple[Name, Name]
    placement: Placement
    span: Span


@dataclass(frozen=True)
class SettingsField:
    """`shape m=16 ...` or `cycles gfx942=16 ...`; `name` is the keyword."""

    name: Name
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class CallField:
    name: Name
    text: str
    span: Span


@dataclass(frozen=True)
class AliasField:
    name: Name
    aliases: tuple[Name, ...]


Field = OperandField | SettingsField | CallField | AliasField


@dataclass(frozen=True)
class IntrinsicItem:
    name: Name
    doc: str
    fields: tuple[Field, ...]


Item = Use | LayoutItem | IntrinsicItem
