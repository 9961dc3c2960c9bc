"""What is wrong with a text, where, and how to mend it, shown the way rustc does."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mfmadsl.error import MfmadslError


@dataclass(frozen=True)
class Source:
    """A text and the name it goes by in messages."""

    name: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        """Where lines begin: a file may have as many mistakes as lines."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) of a character offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """A line of the text, by its number from 1."""
        start = self._starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else None].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """Characters `start` up to `end` of a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The words of the source."""
        return self.source.text[self.start : self.end]


@dataclass(frozen=True)
class Diagnostic:
    """One mistake. `code` names the rule and stays the same from release to release."""

    code: str
    message: str
    span: Span
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        """The mistake for editors: lines and columns count from 1, the end is one past it."""
        source = self.span.source
        line, column = source.position(self.span.start)
        end_line, end_column = source.position(self.span.end)
        return {
            "file": source.name,
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "severity": "error",
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        source = self.span.source
        line, column = source.position(self.span.start)
        text = source.line(line)
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        shown, column = _clip(text.expandtabs(1), column, width)
        margin = " " * len(str(line))
        caret = " " * (column - 1) + "^" * min(width, max(1, len(shown) - column + 1))
        rows = [
            f"error[{self.code}]: {self.message}",
            f"{margin}--> {source.name}:{line}:{source.position(self.span.start)[1]}",
            f"{margin} |",
            f"{line} | {shown}",
            f"{margin} | {caret}",
        ]
        if self.hint:
            rows.append(f"{margin} = hint: {self.hint}")
        return "\n".join(rows)


class LanguageError(MfmadslError, ValueError):
    """A text that is no valid `.mfma`; `diagnostics` holds every mistake found, in order."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(str(d) for d in self.diagnostics))


MAXIMUM_MISTAKES = 100
"""Mistakes after which the rest of a file is left alone."""


def stopped(span: Span, items: int) -> Diagnostic:
    """The last diagnostic of a file that has too many: how many items nobody looked at."""
    message = f"too many mistakes: {items} item{'s' * (items != 1)} from here on are not checked"
    return Diagnostic("stopped", message, span, "mend those above first")


_LONGEST_LINE = 160


def _clip(text: str, column: int, width: int) -> tuple[str, int]:
    """A window of a very long line around the culprit, with the column inside it."""
    if len(text) <= _LONGEST_LINE:
        return text, column
    start = max(0, column - 1 - _LONGEST_LINE // 2)
    return text[start : start + _LONGEST_LINE], column - start
