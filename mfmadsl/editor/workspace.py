"""The texts that are open in an editor, and what is known of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mfmadsl.argument import check_path
from mfmadsl.editor.text import Change, Encoding, Text
from mfmadsl.error import ArgumentError
from mfmadsl.language import Checked, Diagnostic, Source, Span, SpecFileError, check_source
from mfmadsl.language.document import check_size, read_source


@dataclass(frozen=True)
class OpenDocument:
    """A text as it is in the editor; `path` is its file, if it has one, `real` where that is."""

    uri: str
    text: Text
    version: int | None
    path: Path | None

    @cached_property
    def real(self) -> Path | None:
        """The file's path with links resolved; None without a file."""
        return self.path and Path(os.path.realpath(self.path))

    @cached_property
    def source(self) -> Source:
        """The text as the parser takes it."""
        return Source(self.uri if self.path is None else str(self.path), self.text.text)


@dataclass(frozen=True)
class Workspace:
    """The texts that are open, by URI; `use` looks beside each, in `search`, in the library.

    `known` is what was found of texts that have not changed since, nor what they use.
    """

    documents: Mapping[str, OpenDocument] = field(default_factory=dict)
    search: tuple[Path, ...] = ()
    encoding: Encoding = "utf-16"
    known: dict[str, Checked] = field(default_factory=dict, compare=False, repr=False)

    def opened(self, uri: str, text: str, version: int | None = None) -> Workspace:
        """The workspace with a text more; what uses its file is read again."""
        document = OpenDocument(uri, Text(text, self.encoding), version, path_of(uri))
        return replace(self, documents={**self.documents, uri: document}, known={})

    def changed(self, uri: str, changes: Iterable[Change], version: int | None = None) -> Workspace:
        """The workspace after an edit; one of a text that nobody has opened opens it."""
        if uri not in self.documents:
            return self.opened(uri, "", version).changed(uri, changes, version)
        old = self.documents[uri]
        document = replace(old, text=old.text.changed(changes), version=version)
        kept = {
            other: checked
            for other, checked in self.known.items()
            if other != uri and old.real not in checked.files and not _lacks_a_file(checked)
        }
        return replace(self, documents={**self.documents, uri: document}, known=kept)

    def closed(self, uri: str) -> Workspace:
        """The workspace without a document."""
        rest = {other: document for other, document in self.documents.items() if other != uri}
        return replace(self, documents=rest, known={})

    def read_again(self) -> Workspace:
        """The same texts, of which nothing is known: files beside them may have changed."""
        return replace(self, known={})

    def checked(self, uri: str) -> Checked:
        """What is known of an open text, as `mfmadsl check` has it of a file."""
        if uri not in self.known:
            self.known[uri] = self._check(self.documents[uri])
        return self.known[uri]

    def uri_of(self, path: Path) -> str:
        """How the editor calls a file; the path has to be absolute."""
        document = self._files.get(Path(os.path.realpath(path)))
        return path.as_uri() if document is None else document.uri

    @cached_property
    def _files(self) -> dict[Path, OpenDocument]:
        return {d.real: d for d in self.documents.values() if d.real is not None}

    def _check(self, document: OpenDocument) -> Checked:
        try:
            check_size(Path(document.source.name), _size(document.text.text))
        except SpecFileError as error:
            source = Source(document.source.name, "")
            mistake = Diagnostic("file", error.reason, Span(source, 0, 0))
            return replace(check_source(source), diagnostics=(mistake,))
        return check_source(document.source, document.path, self.search, self._read)

    def _read(self, path: Path) -> Source:
        """The text of a file that is used: the editor's, if it is open there."""
        document = self._files.get(path)
        if document is None:
            return read_source(path)
        check_size(path, _size(document.text.text))
        return document.source


def path_of(uri: str) -> Path | None:
    """The absolute path of the file that a URI names; None if it names none."""
    try:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            return None
        path = check_path("uri", unquote(parts.path, errors="surrogateescape"))
        return path if path.is_absolute() else None
    except (ValueError, ArgumentError):  # a URI may be any text
        return None


def _size(text: str) -> int:
    """Bytes of the text as a file; half of a character, which JSON can have, counts as three."""
    return len(text.encode("utf-8", "surrogatepass"))


def _lacks_a_file(checked: Checked) -> bool:
    return any(d.code == "use" for d in checked.diagnostics)
