"""What a kernel's `printf` prints, from the words that it hands over."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

_FORM = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?(hh|ll|[hljztL])?([a-zA-Z%])")
_BITS = {"hh": 8, "h": 16, None: 32}  # others have 64
_LONGEST = 4096  # a width or precision that nobody means


def printed(words: Sequence[int]) -> str:
    """The format, a string in whole words, filled with the words behind it: strings lie there as
    well, other arguments take one each, floats as doubles."""
    left = list(words)
    form = _string(left)
    parts, last = [], 0
    for found in _FORM.finditer(form):
        parts.append(form[last : found.start()])
        parts.append(_filled(found, left))
        last = found.end()
    return "".join([*parts, form[last:]])


def _filled(found: re.Match[str], left: list[int]) -> str:
    flags, width, precision, length, kind = found.groups()
    if kind == "%":
        return "%"
    told = "." in found[0]
    if width == "*":
        width = str(_signed(_next(left), 32))
    if precision == "*":
        precision = str(max(0, _signed(_next(left), 32)))
    if width and width.startswith("-"):
        flags, width = f"{flags}-", width[1:]
    if max(int(width or 0), int(precision or 0)) > _LONGEST:
        return found[0]
    form = f"%{flags}{width or ''}" + (f".{precision or 0}" if told else "")
    if kind == "s":
        return f"{form}s" % _string(left)
    value = _next(left)
    bits = _BITS.get(length, 64)
    if kind in "di":
        return f"{form}d" % _signed(value, bits)
    if kind in "uxXo":
        return f"{form}{'d' if kind == 'u' else kind}" % (value & (1 << bits) - 1)
    if kind in "fFeEgG":
        return f"{form}{kind}" % struct.unpack("<d", struct.pack("<Q", value))[0]
    if kind == "c":
        return f"{form}c" % chr(value & 0xFF)
    if kind == "p":
        return f"{form}s" % f"{value:#x}"
    if kind in "aA":
        return float.hex(struct.unpack("<d", struct.pack("<Q", value))[0])
    return found[0]


def _next(left: list[int]) -> int:
    return left.pop(0) if left else 0


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def _string(left: list[int]) -> str:
    """One that ends with a zero, and the words that it takes."""
    content = bytearray()
    while left:
        content += left.pop(0).to_bytes(8, "little")
        if 0 in content[-8:]:
            break
    return content.split(b"\0")[0].decode(errors="replace")
