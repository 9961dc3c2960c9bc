"""The mistakes of open texts, at the files that they are in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mfmadsl.editor.text import Range, text_of
from mfmadsl.editor.workspace import Workspace
from mfmadsl.language import Checked, Diagnostic, Span
from mfmadsl.resources import resource_folder


class Elsewhere(NamedTuple):
    """A mistake in a file that is used."""

    uri: str
    range: Range
    message: str


class EditorDiagnostic(NamedTuple):
    """A mistake with its rule and how to mend it; or that a file which is used has mistakes.

    The second kind has no code and is no mistake of this file: `related` says where they are.
    """

    code: str
    message: str
    hint: str
    range: Range
    related: tuple[Elsewhere, ...] = ()

    @property
    def page(self) -> str:
        """The URI of what docs/diagnostics.md says about the code."""
        return f"{(resource_folder('docs') / 'diagnostics.md').as_uri()}#{self.code}"


def problems(workspace: Workspace) -> dict[str, list[EditorDiagnostic]]:
    """What `mfmadsl check` finds in each open text, by the URI of the file that it is in.

    An open text has its own mistakes, and those of files that are not open come from all that use
    them.
    """
    own: dict[str, list[EditorDiagnostic]] = {}
    others: dict[str, list[EditorDiagnostic]] = {}
    for uri in workspace.documents:
        checked = workspace.checked(uri)
        own[uri] = [_problem(workspace, d) for d in checked.diagnostics if _is_own(checked, d)]
        own[uri] += _uses(workspace, checked)
        for diagnostic in checked.diagnostics:
            if not _is_own(checked, diagnostic):
                others.setdefault(_uri(workspace, diagnostic), []).append(
                    _problem(workspace, diagnostic)
                )
    unopened = {uri: list(dict.fromkeys(found)) for uri, found in others.items() if uri not in own}
    return {**unopened, **own}


def _uses(workspace: Workspace, checked: Checked) -> list[EditorDiagnostic]:
    """A word at each `use` of a file that is wrong, where nothing else might be seen of that."""
    found = []
    for name, path, diagnostics in checked.uses:
        broken = [d for d in diagnostics if not _is_own(checked, d)]
        if broken and path is not None:
            count = f"{len(broken)} mistake{'s' * (len(broken) > 1)}"
            files = sorted({Path(d.span.source.name).name for d in broken})
            related = tuple(
                Elsewhere(_uri(workspace, d), _range(workspace, d.span), d.message) for d in broken
            )
            message = f"`{name.text}` has {count}, in {', '.join(files)}"
            found.append(EditorDiagnostic("", message, "", _range(workspace, name.span), related))
    return found


def _problem(workspace: Workspace, diagnostic: Diagnostic) -> EditorDiagnostic:
    range_ = _range(workspace, diagnostic.span)
    return EditorDiagnostic(diagnostic.code, diagnostic.message, diagnostic.hint, range_)


def _is_own(checked: Checked, diagnostic: Diagnostic) -> bool:
    return diagnostic.span.source.name == checked.source.name


def _uri(workspace: Workspace, diagnostic: Diagnostic) -> str:
    return workspace.uri_of(Path(diagnostic.span.source.name))


def _range(workspace: Workspace, span: Span) -> Range:
    return text_of(span.source.text, workspace.encoding).range(span.start, span.end)
