"""How freely a kernel takes registers."""

from __future__ import annotations

from enum import IntEnum
from math import ceil

from mfmadsl.model import Architecture
from mfmadsl.passes.tir.expression import WORD

MANY_ITERATIONS = 4
"""For so many it is worth it to have the loads of two in flight."""

FEW_WORDS = 40
"""A thread has room for so many words twice."""

OTHERS_PAST_LDS = 48
"""Registers of a lane for addresses and fragments, beside sums and loads that pass the LDS."""

_FROM_MEMORY = 3  # times as long as loads from the L2 take
_LEAST_SETS, _MOST_SETS = 2, 4


def register_sets(words: int, waves: int, groups: int, sums: int, chip: Architecture) -> int:
    """Of how many iterations a wave has the loads in flight, past the LDS, in sets of registers.

    An iteration's have so many `words` of a lane, and a workgroup so many `waves`; there are so
    many `groups` on the chip, and `sums` take registers, too. Two sets at least, so that a wave
    loads while it computes; and the least for which the vector L1 has all its lines under way while
    each SIMD computes with one wave: more would have all waves wait for what the first ones need
    last.
    """
    here = ceil(waves / chip.simds) * max(1, ceil(groups / chip.compute_units))
    of_wave = chip.simds * max(1, words) * WORD * chip.wave_size
    wanted = ceil((chip.l1_bytes / of_wave + 1) / here)
    budget = chip.registers // max(1, ceil(waves / chip.simds)) - sums - OTHERS_PAST_LDS
    return max(1, min(_MOST_SETS, max(_LEAST_SETS, wanted), budget // max(1, words)))


def sharing_lines(chip: Architecture, lds: int, sums: int, waves: int) -> int:
    """How many workgroups share the lines of a vector L1: as many as have room in the LDS, and for
    the `sums` of each of their waves in its registers."""
    held = chip.simds * (chip.simd_registers // (sums + OTHERS_PAST_LDS)) // waves
    return max(1, min(chip.lds_bytes // max(1, lds), held))


def asks_late(
    chip: Architecture, own: float, resident: int, products: float, few_loads: bool, is_plain: bool
) -> bool:
    """Whether the last loads of an iteration come in the next one, as the vector L1 has no lines
    for them beside the others: of `own` bytes of a workgroup, where so many share the lines.

    Not where they take longer than the `products` of an iteration, in cycles: all are asked for at
    once. And not where there are few and leave lines for those of another iteration, which are in
    flight, too. What is not plain is turned or computed on its way into the LDS, and needs its
    loads sooner than what is copied: it is enough if they have lines.
    """
    have_lines = own < chip.l1_bytes if is_plain else own <= chip.l1_bytes
    if few_loads and have_lines:
        return False
    if products < own / chip.l1_bytes * _FROM_MEMORY * chip.l2_latency:
        return False
    return own > chip.l1_bytes / resident


class RegisterUse(IntEnum):
    """What is kept in registers. Only LLVM knows how many a kernel takes: one that spills is built
    again with the next of these."""

    TWO_AHEAD = 0
    """The loads of two iterations, where those of one are few."""

    ONE_AHEAD = 1
    """The loads of one iteration."""

    LEAN = 2
    """Addresses are computed anew where they are used, too."""
