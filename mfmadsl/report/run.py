"""What an emulation did, in lines."""

from __future__ import annotations

from collections.abc import Sequence


def caveats(approximate: Sequence[str], trusted: Sequence[str]) -> list[str]:
    """What is to be known of the matrix instructions of a result; nothing if all is the chip's."""
    lines = []
    if approximate:
        lines.append(f"the chip may round otherwise, no model is public: {', '.join(approximate)}")
    if trusted:
        lines.append(f"taken at the word of the .mfma file: {', '.join(trusted)}")
    return lines
