"""The kinds of entries: the word that begins one, how it is checked, and what it describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mfmadsl.language.accelerator import check_accelerator
from mfmadsl.language.checker import check_intrinsic
from mfmadsl.language.family import intrinsics_of, microkernels_of
from mfmadsl.language.fragment import check_fragment
from mfmadsl.language.microkernel import check_microkernel
from mfmadsl.language.read import check_read_item
from mfmadsl.language.syntax import (
    ENTRY_WORDS,
    AcceleratorItem,
    EntryItem,
    FragmentItem,
    IntrinsicItem,
    LayoutItem,
    MicrokernelItem,
    ReadItem,
)
from mfmadsl.model import Accelerator, Fragment, Intrinsic, Microkernel, Read

Described = Intrinsic | Accelerator | Read | Fragment | Microkernel
Layouts = Mapping[str, LayoutItem]


@dataclass(frozen=True)
class Kind:
    """A kind of entry. `models` gives what an item describes, or raises LanguageError with all that
    is wrong with it."""

    word: str
    models: Callable[[Any, Layouts], tuple[Described, ...]]

    @property
    def item(self) -> type[EntryItem]:
        """The syntax tree of such an entry."""
        return ENTRY_WORDS[self.word]


def _intrinsics(item: IntrinsicItem, layouts: Layouts) -> tuple[Intrinsic, ...]:
    return tuple(m for each in intrinsics_of(item) for m in check_intrinsic(each, layouts))


def _accelerators(item: AcceleratorItem, _: Layouts) -> tuple[Accelerator, ...]:
    return (check_accelerator(item),)


def _reads(item: ReadItem, _: Layouts) -> tuple[Read, ...]:
    return (check_read_item(item),)


def _fragments(item: FragmentItem, layouts: Layouts) -> tuple[Fragment, ...]:
    return (check_fragment(item, layouts),)


def _microkernels(item: MicrokernelItem, layouts: Layouts) -> tuple[Microkernel, ...]:
    return tuple(check_microkernel(each, layouts) for each in microkernels_of(item))


KINDS = (
    Kind("intrinsic", _intrinsics),
    Kind("accelerator", _accelerators),
    Kind("read", _reads),
    Kind("fragment", _fragments),
    Kind("microkernel", _microkernels),
)
"""All of them, in the order in which `Entries` has what a file describes."""


def kind_of(item: EntryItem) -> Kind:
    """The kind of an entry."""
    return next(kind for kind in KINDS if isinstance(item, kind.item))
