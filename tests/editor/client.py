"""A language client of a few lines: JSON-RPC over the pipes of `mfmadsl lsp`.

It shares no code with the server, whose framework would read its own mistakes as it writes them.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PATIENCE = 60  # seconds after which a server does not answer


class Client:
    """A server that runs, and what it has said: answers by their number, and all else in order."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mfmadsl", "lsp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self._notes: list[dict[str, Any]] = []
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, **capabilities: Any) -> dict[str, Any]:
        """What the server can do."""
        asked = {"processId": None, "rootUri": None, "capabilities": capabilities}
        found: dict[str, Any] = self.ask("initialize", asked)
        self.tell("initialized", {})
        return found

    def ask(self, method: str, params: Any = None) -> Any:
        """The answer to a request; an error is a mistake of the test."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._heard.get(timeout=_PATIENCE)
            if message.get("id") == self._number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self._notes.append(message)

    def ask_of(self, method: str, path: Path | str, **more: Any) -> Any:
        """The answer to a request about a document."""
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": uri_of(path)}, **more})

    def tell(self, method: str, params: Any = None) -> None:
        self._send({"method": method, "params": params})

    def open(self, path: Path | str, text: str, version: int = 1) -> None:
        document = {"languageId": "mfma", "version": version, "uri": uri_of(path), "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})

    def change(self, path: Path | str, changes: Sequence[dict[str, Any]], version: int) -> None:
        """Each change has a `text`, and a `range` if it is not the whole document's."""
        document = {"uri": uri_of(path), "version": version}
        told = {"textDocument": document, "contentChanges": list(changes)}
        self.tell("textDocument/didChange", told)

    def heard(self, method: str, **known: Any) -> Any:
        """The parameters of the next notification of a kind, some of which are `known`."""
        while True:
            for number, note in enumerate(self._notes):
                if note.get("method") == method and note["params"].items() >= known.items():
                    return self._notes.pop(number)["params"]
            self._notes.append(self._heard.get(timeout=_PATIENCE))

    def diagnostics(self, path: Path | str, version: int | None = None) -> list[dict[str, Any]]:
        """Those next published of a document, of this version if it is given."""
        known = {"uri": uri_of(path)} | ({} if version is None else {"version": version})
        found: list[dict[str, Any]] = self.heard("textDocument/publishDiagnostics", **known)[
            "diagnostics"
        ]
        return found

    def end(self) -> int:
        """Say goodbye as the protocol has it; the exit code. Nothing was said on stderr."""
        assert self.ask("shutdown") is None
        self.tell("exit")
        return self.wait()

    def wait(self) -> int:
        """The exit code of a server that ends."""
        code = self.process.wait(timeout=_PATIENCE)
        assert self.process.stderr is not None
        assert self.process.stderr.read() == b""
        self.close()
        return code

    def close(self) -> None:
        """End the server, whatever it does, and let go of its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def _send(self, message: dict[str, Any]) -> None:
        # A message with `params: null` is one that no client sends.
        body = {k: v for k, v in {"jsonrpc": "2.0", **message}.items() if v is not None}
        content = json.dumps(body).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self.process.stdin.flush()

    def _listen(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            length = int(line.removeprefix(b"Content-Length: "))
            while stream.readline().strip():
                pass
            self._heard.put(json.loads(stream.read(length)))


def uri_of(path: Path | str) -> str:
    return path.as_uri() if isinstance(path, Path) else path


def position(text: str, piece: str, within: int = 0) -> dict[str, int]:
    """Where a piece of an ASCII text stands that is there once, or a character of it."""
    assert text.isascii()
    assert text.count(piece) == 1, piece
    before = text[: text.index(piece) + within]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def span(text: str, piece: str) -> dict[str, dict[str, int]]:
    return {"start": position(text, piece), "end": position(text, piece, len(piece))}
