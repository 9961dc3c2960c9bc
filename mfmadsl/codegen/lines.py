"""Lines of Python, broken as `ruff format` breaks them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 100


def filled(text: str) -> str:
    """Prose in lines of a docstring, with room for its quotes; a longer word has its own line."""
    return _filled(text, WIDTH - 3)


def call(items: Sequence[str], head: str, indent: int = 0, tail: str = ")") -> str:
    """`head`, arguments and `tail`: in one line, in three, or each argument in its own."""
    broken = _one_each(items, head, indent, tail)
    arguments = f"{' ' * indent}    {', '.join(items)}"
    if "\n" in broken and len(arguments) <= WIDTH:
        return _around(arguments, head, indent, tail)
    return broken


def returned(items: Sequence[str], indent: int = 4) -> str:
    """The statement that returns a tuple, in brackets if it takes several lines."""
    line = f"{' ' * indent}return {', '.join(items)}"
    return line if len(line) <= WIDTH else _one_each(items, "return (", indent, ")")


def function(parameters: Sequence[str], variable: str, element: str) -> str:
    """An argument that is a function, which returns an element of its variable."""
    line = f"lambda {', '.join(parameters)}: {variable}[{element}]"
    if len(line) + 5 <= WIDTH:  # four before it, and a comma
        return line
    return f"lambda {', '.join(parameters)}: {variable}[\n        {element}\n    ]"


def packed_list(items: Sequence[str], head: str) -> str:
    """A list of many short items, as many in a line as go; it is kept from being broken anew."""
    lines = textwrap.indent(_filled(", ".join(items) + ",", WIDTH - 4), "    ")
    return f"{head}\n{lines}\n]  # fmt: skip"


def _one_each(items: Sequence[str], head: str, indent: int, tail: str) -> str:
    line = f"{' ' * indent}{head}{', '.join(items)}{tail}"
    if len(line) <= WIDTH:
        return line
    body = "\n".join(f"{' ' * indent}    {item}," for item in items)
    return _around(body, head, indent, tail)


def _around(body: str, head: str, indent: int, tail: str) -> str:
    margin = " " * indent
    return f"{margin}{head}\n{body}\n{margin}{tail}"


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
