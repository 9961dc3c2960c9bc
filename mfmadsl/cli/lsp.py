"""`mfmadsl lsp`: a language server for editors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import click

from mfmadsl.cli.failure import fail
from mfmadsl.cli.specs import SEARCH


@click.command()
@SEARCH
def lsp(search: tuple[Path, ...]) -> None:
    """Answer an editor on stdin and stdout, by the Language Server Protocol.

    docs/editor.md says how to have an editor start it.
    """
    if importlib.util.find_spec("pygls") is None:
        fail("the language server needs pygls: pip install 'mfmadsl[lsp]'")
    from mfmadsl.editor.server import make_server

    server = make_server(search)
    server.start_io()
    sys.exit(0 if server.ended else 1)  # as the protocol has it
