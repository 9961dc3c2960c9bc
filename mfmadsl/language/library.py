"""From files to intrinsics: reading, `use`, and the library that ships with the package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mfmadsl.argument import check_list, check_path, check_type, clipped
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.language.accelerator import check_accelerator
from mfmadsl.language.cache import cached
from mfmadsl.language.checker import check_intrinsic, check_layout
from mfmadsl.language.diagnostic import (
    MAXIMUM_MISTAKES,
    Diagnostic,
    LanguageError,
    Source,
    did_you_mean,
    stopped,
)
from mfmadsl.language.fragment import check_fragment
from mfmadsl.language.microkernel import check_microkernel
from mfmadsl.language.parser import parse
from mfmadsl.language.read import check_read_item
from mfmadsl.language.syntax import (
    AcceleratorItem,
    FragmentItem,
    IntrinsicItem,
    LayoutItem,
    MicrokernelItem,
    Name,
    NamesField,
    ReadItem,
    Use,
)
from mfmadsl.model import Accelerator, Fragment, Intrinsic, Microkernel, Read, architecture
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


class Entries(NamedTuple):
    """What a file describes."""

    intrinsics: list[Intrinsic]
    accelerators: list[Accelerator]
    reads: list[Read]
    fragments: list[Fragment]
    microkernels: list[Microkernel]


def load(
    path: str | os.PathLike[str], search: Sequence[str | os.PathLike[str]] = ()
) -> list[Intrinsic]:
    """The intrinsics of one file, checked, as `load_entries` does."""
    return load_entries(path, search).intrinsics


def load_entries(
    path: str | os.PathLike[str], search: Sequence[str | os.PathLike[str]] = ()
) -> Entries:
    """What one file describes, checked; `use` looks beside it, in `search`, in the library.

    Raises SpecFileError if the file cannot be read, LanguageError with all of its mistakes.
    """
    path = check_path("path", path)
    check_list("search", search, "a list of folders")
    folders = [check_path("search", folder) for folder in search]
    place = _Place((path.parent, *folders), (Path(os.path.realpath(path)),))
    return _check(_open(read_source(path), place))


def load_source(source: Source, search: Sequence[Path] = ()) -> list[Intrinsic]:
    """The intrinsics of a text; `use` looks in the folders of `search`, then in the library.

    Raises LanguageError with all mistakes of the text.
    """
    return _check(_open(source, _Place(tuple(search)))).intrinsics


def _check(document: _Document) -> Entries:
    found = list(document.diagnostics)
    # Where a layout or a `use` is broken already, a layout that is missing is no second mistake.
    consequences = {"unknown-layout"} if found else set()
    intrinsics: list[Intrinsic] = []
    accelerators: list[Accelerator] = []
    reads: list[Read] = []
    fragments: list[Fragment] = []
    microkernels: list[Microkernel] = []
    items: list[IntrinsicItem | AcceleratorItem | ReadItem | FragmentItem | MicrokernelItem] = [
        *document.intrinsics,
        *document.accelerators,
        *document.reads,
        *document.fragments,
        *document.microkernels,
    ]
    for position, item in enumerate(items):
        if len(found) >= MAXIMUM_MISTAKES:
            found.append(stopped(item.name.span, len(items) - position))
            break
        try:
            if isinstance(item, AcceleratorItem):
                accelerators.append(check_accelerator(item))
            elif isinstance(item, ReadItem):
                reads.append(check_read_item(item))
            elif isinstance(item, FragmentItem):
                fragments.append(check_fragment(item, document.layouts))
            elif isinstance(item, MicrokernelItem):
                microkernels.append(check_microkernel(item, document.layouts))
            else:
                intrinsics += check_intrinsic(item, document.layouts)
        except LanguageError as error:
            found += [d for d in error.diagnostics if d.code not in consequences]
    if found:
        # A layout that fails on its own is found once for every operand that uses it.
        unique = dict.fromkeys(found)
        raise LanguageError(sorted(unique, key=lambda d: (d.span.source.name, d.span.start)))
    return Entries(intrinsics, accelerators, reads, fragments, microkernels)


def read_source(path: Path) -> Source:
    """The text of a file; SpecFileError says what keeps it from being one."""
    try:
        if path.is_dir():
            raise SpecFileError(path, f"is a directory, not a {SUFFIX} file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SpecFileError(path, f"cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        limit = f"{LARGEST_FILE // 1024} KiB"
        raise SpecFileError(path, f"is larger than {limit}, so it is no {SUFFIX} file")
    try:
        return Source(str(path), content.decode("utf-8"))
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 text (byte {error.start} is {content[error.start]:#04x})"
        raise SpecFileError(path, reason) from None


def library_files() -> list[Path]:
    """The files of the library that ships with the package, in a fixed order."""
    return sorted(resource_folder("intrinsics").rglob(f"*{SUFFIX}"))


def library() -> dict[str, Intrinsic]:
    """Every intrinsic of the library, by name, in the order of the files."""
    return _library().intrinsics


def reads() -> dict[str, Read]:
    """Every read of the library in which lanes exchange elements, by name, in order."""
    return _library().reads


def microkernels() -> dict[str, Microkernel]:
    """Every micro-kernel of the library, by name, in the order of the files."""
    return _library().microkernels


class _Library(NamedTuple):
    intrinsics: dict[str, Intrinsic]
    reads: dict[str, Read]
    microkernels: dict[str, Microkernel]


@cache
def _library() -> _Library:
    files = library_files()

    def checked() -> _Library:
        entries = [load_entries(path) for path in files]
        return _Library(
            {i.name: i for described in entries for i in described.intrinsics},
            {read.name: read for described in entries for read in described.reads},
            {kernel.name: kernel for described in entries for kernel in described.microkernels},
        )

    return cached("library", files, checked)


def find_microkernel(name: str) -> Microkernel:
    """The library's micro-kernel called `name`.

    Raises ArgumentError, with the nearest name, if there is none.
    """
    check_type("name", name, str, "a micro-kernel's name")
    known = microkernels()
    if name not in known:
        hint = did_you_mean(name, list(known))
        raise ArgumentError(f"no micro-kernel is called `{clipped(name)}`: {hint}")
    return known[name]


def find(name: str, arch: str | None = None) -> Intrinsic:
    """The library's intrinsic called `name`, or having it as an alias.

    Where several have it, since chips read the same bits as other numbers, the one of `arch`.
    Raises ArgumentError, with the nearest name, if there is none, and for an unknown chip.
    """
    check_type("name", name, str, "an intrinsic's name")
    if arch is not None:
        architecture(arch)
    intrinsics = library()
    called = [i for i in intrinsics.values() if i.is_called(name)]
    if not called and name in microkernels():
        raise ArgumentError(f"`{name}` is a micro-kernel of CPUs, and no matrix instruction")
    if not called:
        hint = did_you_mean(name, list(intrinsics))
        raise ArgumentError(f"no intrinsic is called `{clipped(name)}`: {hint}")
    return next((i for i in called if arch in i.chips), called[0])


@dataclass
class _Document:
    """What one text defines and, of layouts, imports."""

    layouts: dict[str, LayoutItem] = field(default_factory=dict)
    intrinsics: list[IntrinsicItem] = field(default_factory=list)
    accelerators: list[AcceleratorItem] = field(default_factory=list)
    reads: list[ReadItem] = field(default_factory=list)
    fragments: list[FragmentItem] = field(default_factory=list)
    microkernels: list[MicrokernelItem] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """Where a text is read from: the folders in which its `use` looks, and who uses it.

    `users` is the chain of files that led here; `known` are the files that were read already, with
    the folders that they looked in, so that files which use each other's files are read once.
    """

    folders: tuple[Path, ...]
    users: tuple[Path, ...] = ()
    known: dict[tuple[Path, tuple[Path, ...]], _Document] = field(default_factory=dict)

    def of(self, path: Path) -> _Place:
        """The place of a file that is used here."""
        folders = tuple(dict.fromkeys((path.parent, *self.folders)))
        return _Place(folders, (*self.users, path), self.known)


def _open(source: Source, place: _Place) -> _Document:
    """Parse a text and what it uses."""
    items, diagnostics = parse(source)
    document = _Document(diagnostics=diagnostics)
    names: dict[str, Name] = {}
    imported: list[_Document] = []
    for position, item in enumerate(items):
        if len(document.diagnostics) >= MAXIMUM_MISTAKES:
            document.diagnostics.append(stopped(item.name.span, len(items) - position))
            break
        if isinstance(item, Use):
            used = _import(item.name, place)
            document.layouts.update(used.layouts)
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
        elif isinstance(item, AcceleratorItem):
            document.accelerators.append(item)
        elif isinstance(item, ReadItem):
            document.reads.append(item)
        elif isinstance(item, FragmentItem):
            document.fragments.append(item)
        elif isinstance(item, MicrokernelItem):
            document.microkernels.append(item)
        else:
            document.intrinsics.append(item)
            for field_ in item.fields:
                if isinstance(field_, NamesField) and field_.name.text == "alias":
                    for alias in field_.names:
                        _claim(alias, names, document)
    return document


def _claim(name: Name, names: dict[str, Name], document: _Document) -> None:
    if name.text in names:
        line, _ = name.span.source.position(names[name.text].span.start)
        message = f"`{name.text}` is defined twice"
        hint = f"the first one is in line {line}"
        document.diagnostics.append(Diagnostic("duplicate", message, name.span, hint))
    names.setdefault(name.text, name)


def _import(name: Name, place: _Place) -> _Document:
    """What a `use` brings: the layouts of a file, or what is wrong with it."""
    folders = [*place.folders, resource_folder("intrinsics")]
    path = _search(name.text, folders)
    if path is None:
        places = " nor in ".join(_spoken(f) for f in folders)
        message = f"there is no `{name.text}{SUFFIX}` in {places}"
        known = [p.stem for f in folders for p in f.glob(f"*{SUFFIX}")]
        return _unusable(name, message, did_you_mean(name.text, known))
    if path in place.users:
        chain = " -> ".join(p.name for p in (*place.users, path))
        return _unusable(name, f"files use each other in a circle: {chain}")
    if len(place.users) > _DEEPEST_USE:
        return _unusable(name, f"a file that uses a file, {_DEEPEST_USE} times over")
    inner = place.of(path)
    key = path, inner.folders
    if key not in place.known:
        try:
            place.known[key] = _open(read_source(path), inner)
        except SpecFileError as error:
            return _unusable(name, str(error))
    return place.known[key]


def _unusable(name: Name, message: str, hint: str = "") -> _Document:
    return _Document(diagnostics=[Diagnostic("use", message, name.span, hint)])


def _search(name: str, folders: Sequence[Path]) -> Path | None:
    candidates = (folder / f"{name}{SUFFIX}" for folder in folders)
    return next((Path(os.path.realpath(c)) for c in candidates if c.is_file()), None)


def _spoken(folder: Path) -> str:
    return "the library" if folder == resource_folder("intrinsics") else f"`{folder}`"
