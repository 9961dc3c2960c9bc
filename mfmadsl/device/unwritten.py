"""Which bytes of a program's memory nobody has written since they were allocated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.memory import Addresses, Bytes, ByteStore, Words
from mfmadsl.emulator.sanitizer.reserved import reserved

_PAGE = 4096
_KNOWN, _ALL = 0, 1
"""Of a page: what its bytes say, or that nobody has written any of them."""


class Unwritten(ByteStore):
    """A second memory of the same size, whose bytes hold the undefined bits of the first.

    What nobody tells of is defined: allocations begin undefined by `allocate`. Offsets are those of
    `content`, the memory itself.
    """

    def __init__(self, content: Bytes) -> None:
        super().__init__(reserved(content.size, np.uint8))
        self._content = content
        self._pages = reserved(content.size // _PAGE + 2, np.uint8)

    def allocate(self, offset: int, size: int) -> None:
        """Nobody has written to what is allocated here, in pages of its own."""
        self.define(offset, size)
        self._pages[offset // _PAGE : -(-(offset + size) // _PAGE)] = _ALL

    def define(self, offset: int, size: int) -> None:
        """These bytes are written."""
        if not size:
            return
        first, last = -(-offset // _PAGE), (offset + size) // _PAGE
        self._settle(np.array([offset, offset + size - 1]), 1, (first, last))
        self._pages[first:last] = _KNOWN
        if self._bytes[offset : offset + size].any():
            self._bytes[offset : offset + size] = 0

    def copy(self, to: int, source: int, size: int) -> None:
        """Bytes are copied, with what is undefined of them."""
        if not size:
            return
        pages = self._pages[source // _PAGE : (source + size - 1) // _PAGE + 1]
        bits = self._bytes[source : source + size]
        if not pages.any() and not bits.any():
            self.define(to, size)
            return
        self._settle(np.arange(source, source + size, _PAGE), size)
        self._settle(np.array([source + size - 1]), 1)
        kept = self._bytes[source : source + size].copy()
        self.define(to, size)
        self._bytes[to : to + size] = kept

    def load_words(self, offsets: Addresses, count: int) -> Words:
        """Like that of `ByteStore`."""
        self._settle(offsets, 4 * count)
        return super().load_words(offsets, count)

    def load_narrow(self, offsets: Addresses, width: int) -> Words:
        """Like that of `ByteStore`."""
        self._settle(offsets, width)
        return super().load_narrow(offsets, width)

    def store_words(self, offsets: Addresses, values: Words) -> None:
        """Like that of `ByteStore`."""
        self._settle(offsets, 4 * len(values))
        super().store_words(offsets, values)

    def store_narrow(self, offsets: Addresses, values: Words, width: int) -> None:
        """Like that of `ByteStore`."""
        self._settle(offsets, width)
        super().store_narrow(offsets, values, width)

    def _settle(
        self, offsets: npt.NDArray[np.int64], size: int, but: tuple[int, int] = (0, 0)
    ) -> None:
        """Write out the pages that accesses of up to a page touch, but for some.

        One in which there is something that nobody told of was written by the host, through a
        pointer of its own.
        """
        for places in (offsets, offsets + (min(size, _PAGE) - 1)):
            pages = places.reshape(-1) // _PAGE
            wholly = pages[self._pages[pages] == _ALL]
            for page in np.unique(wholly).tolist():
                self._pages[page] = _KNOWN
                at = slice(page * _PAGE, (page + 1) * _PAGE)
                if not but[0] <= page < but[1] and not self._content[at].any():
                    self._bytes[at] = 0xFF
