"""A module as TVM 0.27 writes it into an exported library, from its description: no word of the
runtime's own."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Element = TypeVar("Element")

CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bool": 6}
"""DLPack's codes of types."""


def module_bytes(
    kernels: Iterable[tuple[str, Sequence[tuple[str, int]], Sequence[str]]],
    code: bytes = b"\x7fELF, but no more",
    form: str = "hsaco",
) -> bytes:
    """Of kernels (name, types such as ("float", 32), tags of the launch) and a code object."""
    return b"".join((text(form), many(kernels, _kernel), text(code)))


def _kernel(kernel: tuple[str, Sequence[tuple[str, int]], Sequence[str]]) -> bytes:
    name, types, tags = kernel
    return b"".join(
        (
            text(name),
            text(name),
            many(types, lambda t: struct.pack("<BBH", CODES[t[0]], t[1], 1)),
            many(tags, text),
            many(types, lambda _: bytes(4)),
        )
    )


def text(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(content)) + content


def many(elements: Iterable[Element], one: Callable[[Element], bytes]) -> bytes:
    parts = [one(element) for element in elements]
    return struct.pack("<Q", len(parts)) + b"".join(parts)
