"""Results that the manuals do not tell, or tell in two ways: they are refused where they are asked
for."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.error import EmulationError, Fault
from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.wave import LANES, Waves


def refuse(waves: Waves, unknown: Mask, what: str) -> None:
    """Raise EmulationError where an active lane has what nobody tells; `what` ends a sentence.

    `unknown` is (count, 64), or broadcasts to it.
    """
    asked = np.broadcast_to(unknown, (waves.count, LANES)) & waves.lanes_of(waves.exec_mask())
    if not asked.any():
        return
    wave, lane = (int(i) for i in np.argwhere(asked)[0])
    group, number = waves.position.of(int(waves.index[wave]))
    message = f"the sources of the emulator do not agree on {what}"
    raise EmulationError.of(Fault("not-emulated", message, workgroup=group, wave=number, lane=lane))
