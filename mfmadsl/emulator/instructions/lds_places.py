"""LDS instructions that combine two words of it (Vega ISA, chapter 8, DS_ADD_SRC2_U32; gfx908)."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.atomic import Update
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.transfer import reach_lds
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import check_registers

_OFFSET_BITS = 15


def compile_of_two_places(instruction: Instruction, update: Update) -> Operation:
    """What lies at an address is combined with what lies so many words behind it, lane by lane.

    Raises OperandError for an offset in the upper bits of the address, whose place there is told
    in two ways.
    """
    (operand,) = instruction.taking(1)
    address = check_registers(operand, 1, "v")
    offset = instruction.number("offset")
    if offset >> _OFFSET_BITS:
        raise OperandError("the offset is one of 15 bits, with a sign")
    apart = np.uint32(4 * ((offset ^ 1 << _OFFSET_BITS - 1) - (1 << _OFFSET_BITS - 1)) % (1 << 32))
    width = Width(update.size)

    def execute(waves: Waves) -> None:
        first, mask = waves.read_vector(address, "u32"), waves.exec_mask()
        second, mask = reach_lds(waves, first + apart, mask, update.size, update.size)
        place, reached = reach_lds(waves, first, mask, update.size, update.size)
        if reached is not mask:  # a fault, and whoever watches wants to go on
            return
        if waves.watch is not None:
            waves.watch.loads(waves, waves.lds, second, address, width, mask)
            waves.watch.updates(waves, waves.lds, place, address, width, mask)
        pairs = zip(place.reshape(-1, 1), second.reshape(-1, 1), strict=True)
        for here, there in pairs:
            old, new = (
                np.ascontiguousarray(waves.lds.load_words(at, update.words)[:, 0]).view(
                    update.dtype
                )
                for at in (here, there)
            )
            found = np.asarray(update.atomic.combine(old, new)).astype(update.dtype)
            waves.lds.store_words(here, found.view(np.uint32)[:, None])

    return Operation(execute, "lds", reads_of(address))
