"""What stops an emulation."""

from __future__ import annotations


class EmulationError(RuntimeError):
    """The kernel did something undefined, or something that the emulator does not know.

    The message starts with the line of the assembly text where it happened, if there is one.
    """

    def __init__(self, message: str, line: int | None = None, text: str = "") -> None:
        where = f"line {line}: `{text.strip()}`: " if line is not None else ""
        super().__init__(where + message)
        self.line = line
