"""The syntax tree: what was written, and where. Nothing here is checked.

Named tuples rather than dataclasses: a dozen of those would be a tenth of the start-up time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from mfmadsl.language.diagnostic import Span


class Name(NamedTuple):
    """A word and where it stands."""

    text: str
    span: Span


class Number(NamedTuple):
    """A number and where it stands."""

    value: int
    span: Span


class Binary(NamedTuple):
    """Two expressions and the sign between them."""

    operator: str
    left: Expression
    right: Expression
    span: Span


Expression: TypeAlias = "Name | Number | Binary"


class Use(NamedTuple):
    """`use NAME`."""

    name: Name


class Rule(NamedTuple):
    """`lane = ...`, `register = ...` or `element = ...` of a layout."""

    name: Name
    expression: Expression


class LayoutItem(NamedTuple):
    """`layout NAME(...) { ... }`."""

    name: Name
    doc: str
    parameters: tuple[Name, ...]
    rules: tuple[Rule, ...]

    @property
    def of_vectors(self) -> bool:
        """Whether it is of vector registers and their elements, and not of lanes."""
        return any(rule.name.text == "element" for rule in self.rules)


class Setting(NamedTuple):
    """`NAME=NUMBER`."""

    name: Name
    value: Number


class CallArgument(NamedTuple):
    """An argument of a layout, with its keyword if it has one."""

    keyword: Name | None
    value: Expression


class Placement(NamedTuple):
    """The use of a layout: `operand(i, k, pack=4)`."""

    layout: Name
    arguments: tuple[CallArgument, ...]
    span: Span


class Index(NamedTuple):
    """`k`, or `k / 32`: one value for a group of that many."""

    name: Name
    group: int
    span: Span


class OperandField(NamedTuple):
    """`types` has several names where the instruction takes each of them; `broadcast` is whether
    that word follows, in a micro-kernel."""

    name: Name
    types: tuple[Name, ...]
    indices: tuple[Index, Index]
    placement: Placement
    span: Span
    broadcast: bool = False


class SettingsField(NamedTuple):
    """`shape m=16 ...` or `cycles gfx942=16 ...`; `name` is the keyword."""

    name: Name
    settings: tuple[Setting, ...]


class CallField(NamedTuple):
    """`call "llvm..."`, or `calls "..."` of an accelerator. `unknown` is whether that word follows:
    LLVM does not have the intrinsic."""

    name: Name
    text: str
    span: Span
    unknown: bool = False


class NamesField(NamedTuple):
    """`alias ...`, `modifiers ...` or the like; `name` is the keyword."""

    name: Name
    names: tuple[Name, ...]


class BufferField(NamedTuple):
    """An operand of an accelerator: a tile in a memory scope."""

    name: Name
    type: Name
    indices: tuple[Index, Index]
    scope: str
    scope_span: Span


Field = OperandField | SettingsField | CallField | NamesField


class IntrinsicItem(NamedTuple):
    """`intrinsic NAME { ... }`."""

    name: Name
    doc: str
    fields: tuple[Field, ...]


class FormulaField(NamedTuple):
    """`from_lane ...` or `from_element ...` of a read, `expression ...` of a micro-kernel; `name`
    is the keyword."""

    name: Name
    expression: Expression


MicrokernelField = OperandField | SettingsField | CallField | FormulaField | NamesField


class MicrokernelItem(NamedTuple):
    """`microkernel NAME { ... }`."""

    name: Name
    doc: str
    fields: tuple[MicrokernelField, ...]


ReadField = SettingsField | FormulaField | CallField | NamesField


class ReadItem(NamedTuple):
    """`read NAME { ... }`."""

    name: Name
    doc: str
    fields: tuple[ReadField, ...]


class FragmentItem(NamedTuple):
    """`fragment NAME { ... }`."""

    name: Name
    doc: str
    fields: tuple[OperandField | SettingsField, ...]


class AcceleratorItem(NamedTuple):
    """`accelerator NAME { ... }`."""

    name: Name
    doc: str
    fields: tuple[BufferField | SettingsField | CallField, ...]


EntryItem = IntrinsicItem | AcceleratorItem | ReadItem | FragmentItem | MicrokernelItem
"""An item that describes something, and not how something lies."""

ENTRY_WORDS: Mapping[str, type[EntryItem]] = {
    "intrinsic": IntrinsicItem,
    "accelerator": AcceleratorItem,
    "read": ReadItem,
    "fragment": FragmentItem,
    "microkernel": MicrokernelItem,
}
"""The words that begin entries."""

Item = Use | LayoutItem | EntryItem
