"""Flat addresses: which memory each lane's address leads to.

A generic pointer into the LDS or into scratch memory has a number of its own in its high word, the
aperture, and the place there in its low word (LLVM, "User Guide for AMDGPU Backend", section
"Address Spaces"). Linux gives processes on these chips always the same ones (amdkfd,
`MAKE_LDS_APP_BASE_V9` and `MAKE_SCRATCH_APP_BASE_V9`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.transfer import reach_global, reach_lds, reach_scratch
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.text.operand import (
    PRIVATE_BASE,
    PRIVATE_LIMIT,
    SHARED_BASE,
    SHARED_LIMIT,
)

SHARED, PRIVATE = 0x1_0000, 0x2_0000
"""The high words of addresses in the LDS and in scratch memory."""

HARDWARE_WORDS = {
    SHARED_BASE: (0, SHARED),
    SHARED_LIMIT: (0xFFFF_FFFF, SHARED),
    PRIVATE_BASE: (0, PRIVATE),
    PRIVATE_LIMIT: (0xFFFF_FFFF, PRIVATE),
}
"""What the registers that name the apertures hold."""

Access = Callable[[ByteStore, Addresses, Mask | None], None]
"""Accesses one memory at offsets, in the lanes of a mask."""


def access_flat(waves: Waves, addresses: Array, size: int, alignment: int, access: Access) -> None:
    """Access global memory, the LDS and scratch memory, each for the lanes that point there.

    Raises EmulationError as `reach_global` does.
    """
    mask = waves.exec_mask()
    aperture = np.broadcast_to(addresses >> np.uint64(32), (waves.count, LANES))
    if not ((aperture == SHARED) | (aperture == PRIVATE)).any():
        offsets, reached = reach_global(waves, addresses, mask, size, alignment)
        access(waves.memory, offsets, reached)
        return
    lanes, low = waves.lanes_of(mask), addresses.astype(np.uint32)
    in_lds, in_scratch = lanes & (aperture == SHARED), lanes & (aperture == PRIVATE)
    elsewhere = lanes & ~in_lds & ~in_scratch
    if in_lds.any():
        access(waves.lds, *reach_lds(waves, low, in_lds, size, alignment))
    if in_scratch.any():
        access(waves.scratch, *reach_scratch(waves, low, in_scratch, size))
    if elsewhere.any():
        access(waves.memory, *reach_global(waves, addresses, elsewhere, size, alignment))
