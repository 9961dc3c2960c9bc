"""Branches too long for `s_branch`, whose offset has 16 bits: LLVM adds it to the program counter.

        s_getpc_b64 s[98:99]
    .Lpost_getpc3:
        s_add_u32 s98, s98, (.LBB0_9-.Lpost_getpc3)&4294967295
        s_addc_u32 s99, s99, (.LBB0_9-.Lpost_getpc3)>>32      ->  s_branch .LBB0_9
        s_setpc_b64 s[98:99]

What else computes an address is executed as it stands, where the text tells where code lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

LENGTH = 4
"""The instructions of a long branch."""

_LONG_BRANCH = re.compile(
    r"s_getpc_b64 s\[(?P<low>\d+):(?P<high>\d+)\]\n"
    r"(?:(?P<here>[\w.$]+):\n)?"
    r"s_add_u32 s(?P=low), s(?P=low), (?P<offset>\S+)\n"
    r"s_addc_u32 s(?P=high), s(?P=high), (?P<above>\S+)\n"
    r"s_setpc_b64 s\[(?P=low):(?P=high)\]"
)
_OFFSET = re.compile(r"\((?P<to>[\w.$]+)-(?P<here>[\w.$]+)\)(?P<half>&4294967295|>>32)")

Line = tuple[int, str]
"""The number of a line of the text, and its code."""


def with_long_branches(lines: Sequence[Line]) -> Iterator[Line]:
    """Lines of code, with `s_branch` for each long branch between labels."""
    at = 0
    while at < len(lines):
        number, code = lines[at]
        following = lines[at : at + LENGTH + 1]  # and a label
        label = _label([code for _, code in following]) if code.startswith("s_getpc") else None
        if label is None:
            yield number, code
            at += 1
        else:
            yield number, f"s_branch {label}"
            at += len(following)


def _label(codes: Sequence[str]) -> str | None:
    """Where a long branch leads; None of what is none."""
    found = _LONG_BRANCH.fullmatch("\n".join(" ".join(code.split()) for code in codes))
    if found is None:
        return None
    low, high = (_OFFSET.fullmatch(found[name]) for name in ("offset", "above"))
    if low is None or high is None or (low["half"], high["half"]) != ("&4294967295", ">>32"):
        return None
    is_one = low["to"] == high["to"] and low["here"] == high["here"] == found["here"]
    return low["to"] if is_one else None


def distance(codes: Sequence[str]) -> int | None:
    """How many bytes after its first instruction a long branch in machine code leads; None of what
    is none."""
    found = _LONG_BRANCH.fullmatch("\n".join(codes))
    if found is None or found["here"] is not None:
        return None
    low, high = _number(found["offset"]), _number(found["above"])
    if low is None or high is None:
        return None
    whole = (high % (1 << 32) << 32) + low % (1 << 32)
    return whole - (whole >> 63 << 64)


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
