"""LDS instructions whose address is in M0 (CDNA3 ISA, chapter 11)."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.machine.operation import OperandRead, Operation
from mfmadsl.emulator.machine.transfer import M0_REGISTER, load, reach_lds, store
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import check_registers

COUNTERS = {"ds_append": 1, "ds_consume": -1}
BY_LANE = ("ds_read_addtid_b32", "ds_write_addtid_b32")
_WORD = Width(4)


def compile_counter(instruction: Instruction, sign: int) -> Operation:
    """ds_append and ds_consume: how many lanes are on is added to a word, or taken off it; all of
    them get what was there before."""
    (first,) = instruction.taking(1)
    target, place = check_registers(first, 1, "va"), np.uint32(instruction.number("offset"))

    def execute(waves: Waves) -> None:
        lanes = waves.lanes_of(waves.exec_mask())
        first_lane = lanes & (np.cumsum(lanes, axis=1) == 1)
        base = waves.read_scalar(M0_REGISTER, "u32") >> np.uint32(16)
        address = (base + place)[:, None]
        offsets, mask = reach_lds(waves, address, first_lane, 4, 4)
        if waves.watch is not None:
            waves.watch.updates(waves, waves.lds, offsets, target, _WORD, mask)
        found = np.zeros((waves.count, 1), np.uint32)
        reached = waves.lanes_of(mask).any(axis=1)
        for wave, offset in zip(np.flatnonzero(reached), offsets.reshape(-1, 1), strict=True):
            found[wave] = waves.lds.load_words(offset, 1)[0]
            count = np.int64(found[wave, 0]) + sign * int(lanes[wave].sum())
            waves.lds.store_words(offset, np.array([[count % (1 << 32)]], np.uint32))
        waves.write_vector(target, found)

    return Operation(execute, "lds", (OperandRead(M0_REGISTER),), (target,))


def compile_by_lane(instruction: Instruction) -> Operation:
    """A word for each lane, one after the other from M0 and the offset on."""
    (first,) = instruction.taking(1)
    data, place = check_registers(first, 1, "va"), np.uint32(instruction.number("offset"))
    is_load = "read" in instruction.name

    def execute(waves: Waves) -> None:
        base = (waves.read_scalar(M0_REGISTER, "u32") & np.uint32(0xFFFF)) + place
        addresses = base[:, None] + 4 * np.arange(LANES, dtype=np.uint32)
        offsets, mask = reach_lds(waves, addresses, waves.exec_mask(), 4, 4)
        (load if is_load else store)(waves, waves.lds, offsets, data, _WORD, mask)

    m0 = OperandRead(M0_REGISTER)
    if is_load:
        return Operation(execute, "lds", (m0,), (data,))
    return Operation(execute, "lds", (m0, OperandRead(data, moved=True)))
