"""How a product is cut for a CPU: register tiles, panels, and the chunks that threads compute."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CpuTiling:
    """One register tile is that of `kernel`, the name of a micro-kernel.

    A chunk is `rows` x `columns` such tiles of C. Its part of B is packed first, into one panel for
    each column of tiles; where A cannot be read as it lies, a row of tiles is packed as well. With
    `parallel`, threads share the chunks.
    """

    kernel: str
    rows: int
    columns: int
    parallel: bool = True
