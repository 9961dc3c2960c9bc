"""A text, checked: what it describes as far as it is right, and every mistake."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mfmadsl.language.diagnostic import (
    MAXIMUM_MISTAKES,
    Diagnostic,
    LanguageError,
    Source,
    stopped,
)
from mfmadsl.language.document import (
    Document,
    Place,
    Reader,
    folders_of,
    open_document,
    read_source,
)
from mfmadsl.language.kind import KINDS, Described, kind_of
from mfmadsl.language.syntax import EntryItem, Item, LayoutItem, Name
from mfmadsl.model import Accelerator, Fragment, Intrinsic, Microkernel, Read


class Entries(NamedTuple):
    """What a file describes."""

    intrinsics: list[Intrinsic]
    accelerators: list[Accelerator]
    reads: list[Read]
    fragments: list[Fragment]
    microkernels: list[Microkernel]


class Used(NamedTuple):
    """A `use`: its name, the file that it brings, if there is one, and the mistakes in that."""

    name: Name
    path: Path | None
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Checked:
    """What is known of a text, right or wrong.

    `items` are the well-formed ones, in order; `described` has what those without mistakes
    describe, where an intrinsic of several types is several; `layouts` are those that an operand
    may name. `files` are those that were read besides, `folders` where `use` looks for them.
    """

    source: Source
    diagnostics: tuple[Diagnostic, ...]
    items: tuple[Item, ...]
    described: tuple[tuple[EntryItem, tuple[Described, ...]], ...]
    layouts: Mapping[str, LayoutItem]
    uses: tuple[Used, ...]
    files: frozenset[Path]
    folders: tuple[Path, ...]

    def entries(self) -> Entries:
        """What the text describes. Raises LanguageError with all of its mistakes."""
        if self.diagnostics:
            raise LanguageError(self.diagnostics)
        models = [model for _, described in self.described for model in described]
        return Entries(
            [m for m in models if isinstance(m, Intrinsic)],
            [m for m in models if isinstance(m, Accelerator)],
            [m for m in models if isinstance(m, Read)],
            [m for m in models if isinstance(m, Fragment)],
            [m for m in models if isinstance(m, Microkernel)],
        )


def check_source(
    source: Source,
    path: Path | None = None,
    search: Sequence[Path] = (),
    read: Reader = read_source,
) -> Checked:
    """All that is known of a text, which stands in the file `path` if there is one.

    `use` looks beside that file, in the folders of `search`, in the library. `read` gives the text
    of what it finds, so that an editor can have its own.
    """
    if path is None:
        place = Place(tuple(search), read)
    else:
        place = Place((path.parent, *search), read, (Path(os.path.realpath(path)),))
    document = open_document(source, place)
    described, diagnostics = _check(document)
    uses = tuple(Used(name, used.path, tuple(used.diagnostics)) for name, used in document.uses)
    files = frozenset(file for file, _ in place.known)
    return Checked(
        source, tuple(diagnostics), tuple(document.items), described, document.layouts, uses, files,
        tuple(folders_of(place)),
    )  # fmt: skip


def _check(
    document: Document,
) -> tuple[tuple[tuple[EntryItem, tuple[Described, ...]], ...], list[Diagnostic]]:
    """What each entry without mistakes describes; and all mistakes, in order."""
    found = list(document.diagnostics)
    # Where a layout or a `use` is broken already, a layout that is missing is no second mistake.
    consequences = {"unknown-layout"} if found else set()
    described: list[tuple[EntryItem, tuple[Described, ...]]] = []
    names: dict[str, str] = {}
    items = [e for kind in KINDS for e in document.entries if isinstance(e, kind.item)]
    for position, item in enumerate(items):
        if len(found) >= MAXIMUM_MISTAKES:
            found.append(stopped(item.name.span, len(items) - position))
            break
        try:
            models = kind_of(item).models(item, document.layouts)
            described.append((item, models))
            found += _defined_twice(item, models, names)
        except LanguageError as error:
            found += [d for d in error.diagnostics if d.code not in consequences]
    # A layout that fails on its own is found once for every operand that uses it.
    unique = dict.fromkeys(found)
    return tuple(described), sorted(unique, key=lambda d: (d.span.source.name, d.span.start))


def _defined_twice(
    item: EntryItem, models: Sequence[Described], names: dict[str, str]
) -> Iterator[Diagnostic]:
    """A mistake for each name that one of several entries shares with another.

    `names` has the item of each name; of two items of one name the reader has told already.
    """
    for model in models:
        first = names.setdefault(model.name, item.name.text)
        if first != item.name.text:
            message = f"`{model.name}`, one of these entries, is defined twice"
            hint = f"the other one is in `{first}`"
            yield Diagnostic("duplicate", message, item.name.span, hint)
