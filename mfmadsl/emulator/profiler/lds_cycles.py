"""How many cycles the LDS needs for the lanes of one instruction.

Lanes go in phases, and the lanes of one phase at once unless two of them need different words of
one bank. Which lanes go together was measured: see `Architecture`, sources F and G.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.model import Architecture

Phases = npt.NDArray[np.int64]


@cache
def phases(banks: int, size: int, reads: bool) -> Phases:
    """The lanes of each phase, (phases, lanes), of accesses of `size` bytes a lane to the banks."""
    lanes = np.arange(LANES)
    words = max(1, size // 4)
    if words <= 2:
        return lanes.reshape(-1, banks // words)
    if not reads:
        return lanes.reshape(-1, 8)
    # The four lanes from 0 go with those from 20, those from 4 with those from 16, and so on.
    quads = np.array([[0, 20], [12, 24], [4, 16], [8, 28]])
    quads = np.concatenate([quads, quads + 32])
    groups = (quads[..., None] + np.arange(4)).reshape(-1, 8)
    return groups.reshape(-1, 16) if banks == 64 else groups


def lds_cycles(
    chip: Architecture, addresses: npt.NDArray[np.int64], active: npt.NDArray[np.bool_], size: int,
    reads: bool,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:  # fmt: skip
    """Cycles that waves need, and those without conflicts; addresses are (waves, 64), in bytes."""
    banks = chip.lds_read_banks if reads else chip.lds_banks
    # Iterations of a loop differ by a buffer's start: as many words of every bank lie before it.
    row = banks * 4
    base = int(addresses[active].min()) // row * row if active.any() else 0
    within = np.where(active, addresses - base, 0)
    return _cycles(within.tobytes(), active.tobytes(), banks, size, reads)


@lru_cache(maxsize=256)
def _cycles(
    addresses_bytes: bytes, active_bytes: bytes, banks: int, size: int, reads: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    addresses = np.frombuffer(addresses_bytes, np.int64).reshape(-1, LANES)
    active = np.frombuffer(active_bytes, np.bool_).reshape(-1, LANES)
    order = phases(banks, size, reads)
    first, last = addresses // 4, (addresses + size - 1) // 4
    words = int((last - first).max(initial=0)) + 1  # one more where it is not aligned to four bytes
    waves = len(addresses)
    word = first[:, order, None] + np.arange(words)
    on = (active[:, order, None] & (word <= last[:, order, None])).reshape(waves, len(order), -1)
    word = np.where(on, word.reshape(waves, len(order), -1), -1)
    cycles = np.zeros((waves, len(order)), np.int64)
    # Words that are asked for twice are read once.
    word = np.sort(word, axis=-1)
    new = np.concatenate(
        [np.ones((waves, len(order), 1), np.bool_), word[..., 1:] != word[..., :-1]], axis=-1
    )
    new &= word >= 0
    bank = word % banks
    for each in range(banks):
        np.maximum(cycles, (new & (bank == each)).sum(axis=-1), out=cycles)
    needed = on.any(axis=-1)
    return np.maximum(cycles, needed).sum(axis=-1), needed.sum(axis=-1)
