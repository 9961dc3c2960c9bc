"""What a main loop does while the matrix cores work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Overlap:
    """What is issued under matrix instructions.

    `loads`: the next iteration's loads from memory. `fragments`: the next register step's reads of
    the LDS. `ordered`: each of these stands among the matrix instructions, where LLVM leaves it.
    """

    name: str
    loads: bool = False
    fragments: bool = False
    ordered: bool = False

    @property
    def is_staged(self) -> bool:
        """Whether more than one stage in the LDS is of use."""
        return self.fragments


OVERLAPS: dict[str, Overlap] = {
    each.name: each
    for each in (
        Overlap("nothing"),
        Overlap("loads", loads=True),
        Overlap("fragments", loads=True, fragments=True),
        Overlap("all", loads=True, fragments=True, ordered=True),
    )
}

DEFAULT_OVERLAP = "all"
"""What a loop gets that says nothing."""
