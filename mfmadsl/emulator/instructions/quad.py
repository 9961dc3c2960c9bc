"""Scalar instructions on groups of bits: of four lanes each, or doubled (CDNA3 ISA, SOP1)."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.machine.bits import Array

_GROUP = 4


def any_of_quads(a: Array) -> Array:
    """A bit for each four, set where one of them is (s_quadmask)."""
    found = np.zeros_like(a)
    for place in range(8 * a.itemsize // _GROUP):
        bits = a >> a.dtype.type(_GROUP * place) & a.dtype.type(0xF)
        found |= (bits != 0).astype(a.dtype) << a.dtype.type(place)
    return found


def whole_quads(a: Array) -> Array:
    """All four bits set where one of them is (s_wqm)."""
    found = np.zeros_like(a)
    for place in range(8 * a.itemsize // _GROUP):
        shift = a.dtype.type(_GROUP * place)
        bits = a >> shift & a.dtype.type(0xF)
        found |= np.where(bits != 0, a.dtype.type(0xF), a.dtype.type(0)) << shift
    return found


def doubled_bits(a: Array) -> Array:
    """Each bit twice, in 64 bits (s_bitreplicate_b64_b32)."""
    wide = a.astype(np.uint64)
    for distance, mask in (
        (16, 0x0000_FFFF_0000_FFFF), (8, 0x00FF_00FF_00FF_00FF), (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333), (1, 0x5555_5555_5555_5555),
    ):  # fmt: skip
        wide = (wide | wide << np.uint64(distance)) & np.uint64(mask)
    return wide | wide << np.uint64(1)
