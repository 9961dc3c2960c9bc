"""Undefined bytes that only pass through registers: padding of structures that are copied whole.

C stores a structure member by member, and copies it with the bytes between them, which nobody
wrote. So some bytes of what a lane loads or stores at once may be undefined, but not all of them.
They only move from memory to memory: a register that nobody wrote is no padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.transfer import read
from mfmadsl.emulator.machine.width import Width


def _whole(width: Width) -> np.uint32:
    """The bits of a word that move."""
    return np.uint32((1 << 8 * min(width.size, 4)) - 1)


def undefined_of(shadow: ByteStore, offsets: Addresses, width: Width) -> Array:
    """The undefined bits of what lanes load: (words, lanes), as they come into registers."""
    bits = read(shadow, offsets, replace(width, signed=False, half=""))
    if width.signed:
        sign = np.uint32(1 << 8 * width.size - 1)
        bits = bits | np.where(bits & sign, ~_whole(width), np.uint32(0))
    return bits << np.uint32(16) if width.half == "hi" else bits


def wholly(bits: Array, width: Width) -> Mask:
    """Lanes that load nothing but undefined bytes."""
    all_of_them = _whole(width) << np.uint32(16 if width.half == "hi" else 0)
    bad: Mask = (bits & all_of_them == all_of_them).all(axis=0)
    return bad


def not_padding(
    words: Sequence[Array], width: Width, moved: Sequence[bool], follows: bool = False
) -> list[Mask]:
    """Of each word that is stored, with the undefined bits of each lane, the lanes that must not;
    `moved` are the words that were loaded so, which one who `follows` them lets pass."""
    whole = _whole(width)
    nothing = np.logical_and.reduce([word & whole == whole for word in words])
    return [
        (word != 0) & ((not loaded) | ((not follows) & (_cut(word) | nothing)))
        for word, loaded in zip(words, moved, strict=True)
    ]


def _cut(word: Array) -> Mask:
    """Where some bits of a byte are undefined, and others are not."""
    cut = np.zeros(word.shape, np.bool_)
    for place in range(0, 32, 8):
        byte = word >> np.uint32(place) & np.uint32(0xFF)
        cut |= (byte != 0) & (byte != 0xFF)
    return cut
