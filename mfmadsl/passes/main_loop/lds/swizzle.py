"""The choice of a swizzle: the one with the fewest cycles for the accesses that there are.

Which lanes of a wave an access serves together was measured (see docs/emulator.md, the LDS), and
so was how many banks reads of 16 bytes see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np
import numpy.typing as npt

from mfmadsl.model import Architecture
from mfmadsl.passes.main_loop.lds.places import Swizzle, Term, swizzled

Array = npt.NDArray[np.int64]

_WORD = 4


@dataclass(frozen=True)
class WaveAccess:
    """An access of a wave: each lane's first element in the buffer, and bytes from there on."""

    places: tuple[int, ...]
    size: int
    is_read: bool


def choose(
    accesses: Sequence[WaveAccess], element_bytes: int, length: int, chip: Architecture
) -> Swizzle:
    """A swizzle for a buffer of `length` elements in the LDS of a chip; () if none helps.

    Ties go to the first; the simplest comes first.
    """
    # Those that only start elsewhere, as in other tiles of a wave, behave alike; but where rows are
    # no power of two, only if they start at the same bits.
    within = length & -length
    within = 1 if within == length else within
    alike = {
        (tuple(x - min(a.places) for x in a.places), min(a.places) % within, a.size, a.is_read): a
        for a in reversed(accesses)
    }
    distinct = list(alike.values())
    if not distinct:
        return ()
    widest = max(span(access, element_bytes) for access in accesses)
    best: Swizzle = ()
    least = _cycles(distinct, best, element_bytes, chip)
    floor = sum(len(_lanes_together(access, chip)) for access in distinct)
    if least == floor:
        return ()
    for swizzle in _candidates(widest, length):
        cycles = _cycles(distinct, swizzle, element_bytes, chip, least)
        if cycles < least:
            best, least = swizzle, cycles
            if least == floor:
                break
    return best


def span(access: WaveAccess, element_bytes: int) -> int:
    """The smallest power of two such that no lane's access crosses a multiple of it.

    That is more than the elements of an access where it is not aligned to its own size.
    """
    places = np.asarray(access.places, np.int64)
    last = places + max(1, access.size // element_bytes) - 1
    return 1 << int(np.bitwise_or.reduce(places ^ last)).bit_length()


def _candidates(widest: int, length: int) -> Iterator[Swizzle]:
    """The swizzles that keep elements of an aligned `widest` together: one term, then two."""
    bits = (length & -length).bit_length() - 1
    low = max(widest, 1).bit_length() - 1
    singles = [
        Term(right, (1 << width) - 1, left)
        for left in range(low, low + 3)
        for width in (3, 2, 1, 4)
        for right in range(left + width, bits)
    ]
    yield from ((term,) for term in singles)
    # A second term of bits further up, for reads and writes that go along different axes.
    for term in singles:
        width = term.mask.bit_length()
        if width >= 2:
            for apart in (width, width + 1, width - 1):
                if term.right + apart < bits:
                    yield term, Term(term.right + apart, term.mask, term.left)
    # For lanes that write a few neighbours in turn: bits of the place in a row, and of the row.
    for left in range(low, low + 3):
        for right in range(left + 1, left + 3):
            own = Term(right, 7, left)
            rows = [Term(row, mask, left) for row in range(right + 1, bits) for mask in (7, 15)]
            yield from ((own, term) for term in rows)
    if length != length & -length:
        # Where rows are no power of two, two bits may be far apart.
        bit = [term for term in singles if term.mask == 1]
        yield from ((one, two) for one in bit for two in bit if one.left < two.left < one.right)


def _cycles(
    accesses: Iterable[WaveAccess], swizzle: Swizzle, size: int, chip: Architecture,
    enough: float = inf,
) -> int:  # fmt: skip
    """Cycles that all accesses take together: the most words of one bank, phase by phase.

    Those after `enough` of them are not counted.
    """
    total = 0
    for access in accesses:
        if total >= enough:
            break
        places = np.asarray(access.places, np.int64)
        moved = places ^ swizzled(places, swizzle) if swizzle else places
        seen = _banks(access.is_read, chip)
        lanes = _lanes_together(access, chip)
        first = (moved * size // _WORD)[lanes]
        words = first[..., None] + np.arange(max(1, access.size // _WORD))
        words = np.sort(words.reshape(len(lanes), -1), axis=-1)
        # A word that several lanes want is read once.
        new = np.ones(words.shape, np.bool_)
        new[:, 1:] = words[:, 1:] != words[:, :-1]
        bank = words % seen + seen * np.arange(len(lanes))[:, None]
        counts = np.bincount(bank[new], minlength=seen * len(lanes))
        total += int(counts.reshape(len(lanes), seen).max(axis=-1).sum())
    return total


def _banks(is_read: bool, chip: Architecture) -> int:
    """How many banks an access sees."""
    return chip.lds_read_banks if is_read else chip.lds_banks


def _lanes_together(access: WaveAccess, chip: Architecture) -> Array:
    """The lanes that an access of a chip serves together, (phases, lanes)."""
    banks = _banks(access.is_read, chip)
    return _phases(access.size, access.is_read, banks, len(access.places))


@cache
def _phases(size: int, is_read: bool, banks: int, lanes: int) -> Array:
    """The lanes that go together, (phases, lanes)."""
    words, every = max(1, size // _WORD), np.arange(lanes)
    if words <= 2:
        return every.reshape(-1, banks // words)
    if not is_read:
        return every.reshape(-1, 8)
    # Lanes 0 to 3 go with 20 to 23, 4 to 7 with 16 to 19, and so on.
    quads = np.array([[0, 20], [12, 24], [4, 16], [8, 28]])
    quads = np.concatenate([quads + 32 * half for half in range(lanes // 32)])
    groups = (quads[..., None] + np.arange(4)).reshape(-1, 8)
    return groups.reshape(-1, 16) if banks == 64 else groups
