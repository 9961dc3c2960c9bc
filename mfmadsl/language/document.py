"""From files to syntax trees: reading a text, and what it brings by `use`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mfmadsl.error import MfmadslError
from mfmadsl.language.checker import check_layout
from mfmadsl.language.diagnostic import (
    MAXIMUM_MISTAKES,
    Diagnostic,
    Source,
    stopped,
)
from mfmadsl.language.parser import parse
from mfmadsl.language.syntax import (
    EntryItem,
    IntrinsicItem,
    Item,
    LayoutItem,
    Name,
    NamesField,
    Use,
)
from mfmadsl.nearest import did_you_mean
from mfmadsl.resources import resource_folder

SUFFIX = ".mfma"
LARGEST_FILE = 1 << 20
"""Bytes of the largest file that is read: a thousand times the library's longest."""

_DEEPEST_USE = 32


class SpecFileError(MfmadslError, ValueError):
    """A path that cannot be read as a `.mfma` file, and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason

    def as_json(self) -> dict[str, Any]:
        """The mistake in the form of a diagnostic, at the file's beginning."""
        place = {"line": 1, "column": 1, "end_line": 1, "end_column": 1}
        about = {"severity": "error", "code": "file", "message": self.reason, "hint": ""}
        return {"file": str(self.path), **place, **about}


def read_source(path: Path) -> Source:
    """The text of a file; SpecFileError says what keeps it from being one."""
    try:
        if path.is_dir():
            raise SpecFileError(path, f"is a directory, not a {SUFFIX} file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SpecFileError(path, f"cannot be read: {error.strerror}") from None
    check_size(path, len(content))
    try:
        return Source(str(path), content.decode("utf-8"))
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 text (byte {error.start} is {content[error.start]:#04x})"
        raise SpecFileError(path, reason) from None


def check_size(path: Path, size: int) -> None:
    """Raise SpecFileError if a file of `size` bytes is larger than any that is read."""
    if size > LARGEST_FILE:
        limit = f"{LARGEST_FILE // 1024} KiB"
        raise SpecFileError(path, f"is larger than {limit}, so it is no {SUFFIX} file")


Reader = Callable[[Path], Source]
"""The text of a file; raises SpecFileError where there is none."""


@dataclass
class Document:
    """What one text defines and, of layouts, imports.

    `items` are all that are well-formed, in order, and `entries` those that describe something;
    `uses` has the file that each `use` brings.
    """

    path: Path | None = None
    items: list[Item] = field(default_factory=list)
    layouts: dict[str, LayoutItem] = field(default_factory=dict)
    entries: list[EntryItem] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    uses: list[tuple[Name, Document]] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """Where a text is read from: the folders in which its `use` looks, and who uses it.

    `users` is the chain of files that led here; `known` are the files that were read already, with
    the folders that they looked in, so that files which use each other's files are read once.
    `read` gives their texts.
    """

    folders: tuple[Path, ...]
    read: Reader = read_source
    users: tuple[Path, ...] = ()
    known: dict[tuple[Path, tuple[Path, ...]], Document] = field(default_factory=dict)

    def of(self, path: Path) -> Place:
        """The place of a file that is used here."""
        folders = tuple(dict.fromkeys((path.parent, *self.folders)))
        return Place(folders, self.read, (*self.users, path), self.known)


def open_document(source: Source, place: Place) -> Document:
    """Parse a text and what it uses, by the place's reader."""
    items, diagnostics = parse(source)
    path = place.users[-1] if place.users else None
    document = Document(path, items, diagnostics=diagnostics)
    names: dict[str, Name] = {}
    imported: list[Document] = []
    for position, item in enumerate(items):
        if len(document.diagnostics) >= MAXIMUM_MISTAKES:
            document.diagnostics.append(stopped(item.name.span, len(items) - position))
            break
        if isinstance(item, Use):
            used = _import(item.name, place)
            document.layouts.update(used.layouts)
            document.uses.append((item.name, used))
            if not any(used is other for other in imported):
                imported.append(used)
                document.diagnostics += used.diagnostics
            continue
        _claim(item.name, names, document)
        if isinstance(item, LayoutItem):
            problems = check_layout(item)
            document.diagnostics += problems
            if not problems:
                document.layouts[item.name.text] = item
        else:
            document.entries.append(item)
        if isinstance(item, IntrinsicItem):
            for field_ in item.fields:
                if isinstance(field_, NamesField) and field_.name.text == "alias":
                    for alias in field_.names:
                        _claim(alias, names, document)
    return document


def _claim(name: Name, names: dict[str, Name], document: Document) -> None:
    if name.text in names:
        line, _ = name.span.source.position(names[name.text].span.start)
        message = f"`{name.text}` is defined twice"
        hint = f"the first one is in line {line}"
        document.diagnostics.append(Diagnostic("duplicate", message, name.span, hint))
    names.setdefault(name.text, name)


def _import(name: Name, place: Place) -> Document:
    """What a `use` brings: the layouts of a file, or what is wrong with it."""
    folders = folders_of(place)
    path = find_file(name.text, folders)
    if path is None:
        places = " nor in ".join(_spoken(f) for f in folders)
        message = f"there is no `{name.text}{SUFFIX}` in {places}"
        known = [p.stem for f in folders for p in f.glob(f"*{SUFFIX}")]
        return _unusable(name, message, did_you_mean(name.text, known))
    if path in place.users:
        chain = " -> ".join(p.name for p in (*place.users, path))
        return _unusable(name, f"files use each other in a circle: {chain}", path=path)
    if len(place.users) > _DEEPEST_USE:
        message = f"a file that uses a file, {_DEEPEST_USE} times over"
        return _unusable(name, message, path=path)
    inner = place.of(path)
    key = path, inner.folders
    if key not in place.known:
        try:
            place.known[key] = open_document(place.read(path), inner)
        except SpecFileError as error:
            return _unusable(name, str(error), path=path)
    return place.known[key]


def _unusable(name: Name, message: str, hint: str = "", path: Path | None = None) -> Document:
    return Document(path, diagnostics=[Diagnostic("use", message, name.span, hint)])


def folders_of(place: Place) -> list[Path]:
    """Where a `use` of a text looks, in this order."""
    return [*place.folders, resource_folder("intrinsics")]


def find_file(name: str, folders: Sequence[Path]) -> Path | None:
    """The first file in the folders that `use` of that name means, with its real path."""
    candidates = (folder / f"{name}{SUFFIX}" for folder in folders)
    return next((Path(os.path.realpath(c)) for c in candidates if c.is_file()), None)


def _spoken(folder: Path) -> str:
    return "the library" if folder == resource_folder("intrinsics") else f"`{folder}`"
