"""The language server: the protocol's types around what the other files of this folder tell."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

# pygls: the usual framework for language servers in Python; the protocol, its types, the loop.
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from mfmadsl.editor.completion import completions
from mfmadsl.editor.definition import definition
from mfmadsl.editor.diagnostics import EditorDiagnostic, problems
from mfmadsl.editor.formatting import formatted
from mfmadsl.editor.hover import hover
from mfmadsl.editor.symbols import symbols
from mfmadsl.editor.text import Change, Encoding, Range, TextPosition, text_of
from mfmadsl.editor.workspace import Workspace
from mfmadsl.language.document import SUFFIX
from mfmadsl.version import __version__

_QUIET = 0.1
"""Seconds without an edit after which texts are checked: each word that is typed is many edits."""

_ENCODINGS: Mapping[str, Encoding] = {
    lsp.PositionEncodingKind.Utf8: "utf-8",
    lsp.PositionEncodingKind.Utf16: "utf-16",
    lsp.PositionEncodingKind.Utf32: "utf-32",
}
_COMPLETION_KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "layout": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.TypeParameter,
    "chip": lsp.CompletionItemKind.EnumMember,
    "file": lsp.CompletionItemKind.Module,
    "call": lsp.CompletionItemKind.Value,
    "name": lsp.CompletionItemKind.Variable,
}
_SYMBOL_KINDS = {
    "layout": lsp.SymbolKind.Function,
    "intrinsic": lsp.SymbolKind.Method,
    "microkernel": lsp.SymbolKind.Method,
    "read": lsp.SymbolKind.Method,
    "fragment": lsp.SymbolKind.Struct,
    "accelerator": lsp.SymbolKind.Class,
}
_OURS = (
    lsp.TEXT_DOCUMENT_DID_OPEN, lsp.TEXT_DOCUMENT_DID_CHANGE, lsp.TEXT_DOCUMENT_DID_CLOSE,
)  # fmt: skip


class EditorServer(LanguageServer):
    """What is open, what was last published of it, and whether the client has said goodbye."""

    def __init__(self, search: Sequence[Path] = ()) -> None:
        super().__init__("mfmadsl", __version__)
        self.texts = Workspace(search=tuple(search))
        self.published: Mapping[str, list[EditorDiagnostic]] = {}
        self.ended = False
        self._timer: asyncio.TimerHandle | None = None

    def check_soon(self) -> None:
        """Publish the mistakes when nothing has been edited for a moment."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_QUIET, self._publish)

    def _publish(self) -> None:
        found = problems(self.texts)
        for uri in [*self.published, *(uri for uri in found if uri not in self.published)]:
            if uri in found or self.published[uri]:
                self._publish_of(uri, found.get(uri, []))
        self.published = found

    def _publish_of(self, uri: str, found: Sequence[EditorDiagnostic]) -> None:
        document = self.texts.documents.get(uri)
        version = None if document is None else document.version
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, [_diagnostic(p) for p in found], version)
        )

    def offset(self, uri: str, position: lsp.Position) -> int | None:
        """The character at a position of an open text; None if it is not open."""
        document = self.texts.documents.get(uri)
        if document is None:
            return None
        return document.text.offset(TextPosition(position.line, position.character))

    def range(self, uri: str, start: int, end: int) -> lsp.Range:
        """A range of the protocol, of offsets in a document."""
        return _range(self.texts.documents[uri].text.range(start, end))


def make_server(search: Sequence[Path] = ()) -> EditorServer:
    """A server that has yet to be started; `use` looks in `search` as `mfmadsl check -I` does."""
    server = EditorServer(search)
    # pygls counts lines as Python does, by form feeds and other signs that end no line of a client.
    for name in _OURS:
        server.protocol.fm.builtin_features.pop(name)
    _answer_edits(server)
    _answer_questions(server)
    return server


def _answer_edits(server: EditorServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        chosen = server.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
        encoding = _ENCODINGS[chosen]
        server.texts = Workspace(search=server.texts.search, encoding=encoding)

    @server.feature(lsp.INITIALIZED)
    def initialized(_: lsp.InitializedParams) -> None:
        workspace = server.client_capabilities.workspace
        watching = None if workspace is None else workspace.did_change_watched_files
        if watching is not None and watching.dynamic_registration:
            watched = [lsp.FileSystemWatcher(f"**/*{SUFFIX}")]
            options = lsp.DidChangeWatchedFilesRegistrationOptions(watched)
            name = lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
            wanted = [lsp.Registration("files", name, options)]
            server.client_register_capability(lsp.RegistrationParams(wanted))

    @server.feature(lsp.SHUTDOWN)
    def shutdown(_: None) -> None:
        server.ended = True

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        server.texts = server.texts.opened(document.uri, document.text, document.version)
        server.check_soon()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        changes = [_change(change) for change in params.content_changes]
        document = params.text_document
        server.texts = server.texts.changed(document.uri, changes, document.version)
        server.check_soon()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.texts = server.texts.closed(params.text_document.uri)
        server.check_soon()

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        server.texts = server.texts.read_again()
        server.check_soon()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.texts = server.texts.read_again()
        server.check_soon()


def _answer_questions(server: EditorServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        uri = params.text_document.uri
        offset = server.offset(uri, params.position)
        found = None if offset is None else hover(server.texts.checked(uri), offset)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(content, server.range(uri, found.start, found.end))

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=['"', "."])
    )
    def completed(params: lsp.CompletionParams) -> lsp.CompletionList:
        uri = params.text_document.uri
        offset = server.offset(uri, params.position)
        found = [] if offset is None else completions(server.texts.checked(uri), offset)
        offered = [
            lsp.CompletionItem(
                completion.word,
                kind=_COMPLETION_KINDS[completion.kind],
                detail=completion.detail.partition("\n")[0] or None,
                documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, completion.detail),
                sort_text=f"{number:04}",
                text_edit=lsp.TextEdit(
                    server.range(uri, completion.start, completion.end), completion.written
                ),
            )
            for number, completion in enumerate(found)
        ]
        return lsp.CompletionList(is_incomplete=False, items=offered)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def defined(params: lsp.DefinitionParams) -> lsp.Location | None:
        uri = params.text_document.uri
        offset = server.offset(uri, params.position)
        checked = None if offset is None else server.texts.checked(uri)
        if offset is None or checked is None:
            return None
        span = definition(checked, offset)
        if span is None:
            return None
        if span.source.name != checked.source.name:
            uri = server.texts.uri_of(Path(span.source.name))
        text = text_of(span.source.text, server.texts.encoding)
        return lsp.Location(uri, _range(text.range(span.start, span.end)))

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outlined(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        uri = params.text_document.uri
        document = server.texts.documents.get(uri)
        return [
            lsp.DocumentSymbol(
                symbol.name,
                _SYMBOL_KINDS[symbol.kind],
                server.range(uri, symbol.start, symbol.end),
                server.range(uri, symbol.name_start, symbol.name_end),
                detail=symbol.kind,
            )
            for symbol in (symbols(document.text.text) if document else ())
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatted_(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        uri = params.text_document.uri
        document = server.texts.documents.get(uri)
        if document is None:
            return []
        text = formatted(document.source)
        if text is None:
            message = f"{document.source.name} has mistakes, and is not formatted"
            server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Warning, message))
        if text is None or text == document.text.text:
            return []
        return [lsp.TextEdit(server.range(uri, 0, len(document.text.text)), text)]


def _diagnostic(problem: EditorDiagnostic) -> lsp.Diagnostic:
    """A mistake; the message of the checker is its first line, the hint the second."""
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    error, told = lsp.DiagnosticSeverity.Error, lsp.DiagnosticSeverity.Information
    related = [
        lsp.DiagnosticRelatedInformation(lsp.Location(uri, _range(place)), message)
        for uri, place, message in problem.related
    ]
    return lsp.Diagnostic(
        _range(problem.range),
        problem.message + hint,
        severity=error if problem.code else told,
        code=problem.code or None,
        code_description=lsp.CodeDescription(problem.page) if problem.code else None,
        source="mfmadsl",
        related_information=related or None,
    )


def _change(change: lsp.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, lsp.TextDocumentContentChangePartial):
        start, end = change.range.start, change.range.end
        range_ = Range(
            TextPosition(start.line, start.character), TextPosition(end.line, end.character)
        )
        return Change(range_, change.text)
    return Change(None, change.text)


def _range(range_: Range) -> lsp.Range:
    return lsp.Range(lsp.Position(*range_.start), lsp.Position(*range_.end))
