"""From files to intrinsics: reading, `use`, and the library that ships with the package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mfmadsl.argument import check_list, check_path, check_type, clipped
from mfmadsl.error import ArgumentError
from mfmadsl.language.cache import cached
from mfmadsl.language.check import Entries, check_source
from mfmadsl.language.diagnostic import Source
from mfmadsl.language.document import SUFFIX, read_source
from mfmadsl.model import Intrinsic, Microkernel, Read, architecture
from mfmadsl.model.intrinsic import spelled
from mfmadsl.nearest import among_many
from mfmadsl.resources import resource_folder


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
    return check_source(read_source(path), path, folders).entries()


def load_source(source: Source, search: Sequence[Path] = ()) -> list[Intrinsic]:
    """The intrinsics of a text; `use` looks in the folders of `search`, then in the library.

    Raises LanguageError with all mistakes of the text.
    """
    return check_source(source, None, search).entries().intrinsics


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
        hint = among_many(name, list(known))
        raise ArgumentError(f"no micro-kernel is called `{clipped(name)}`: {hint}")
    return known[name]


def find(name: str, arch: str | None = None) -> Intrinsic:
    """The library's intrinsic called `name`, or having it as an alias.

    Where several have it, since chips read the same bits as other numbers, the one of `arch`.
    Raises ArgumentError, with the nearest name, if there is none, and for an unknown chip.
    """
    check_type("name", name, str, "an intrinsic's name")
    if arch is not None:
        arch = architecture(arch).name
    intrinsics = library()
    called = [i for i in intrinsics.values() if i.is_called(name)]
    if not called and name in microkernels():
        raise ArgumentError(f"`{name}` is a micro-kernel of CPUs, and no matrix instruction")
    if not called:
        hint = among_many(spelled(name), list(intrinsics))
        raise ArgumentError(f"no intrinsic is called `{clipped(name)}`: {hint}")
    return next((i for i in called if arch in i.chips), called[0])
