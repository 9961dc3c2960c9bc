"""Vector instructions that choose: by a mask of lanes, or bit by bit by a table (CDNA3 and CDNA4
ISA, V_CNDMASK_B32, V_BITOP3_B16 and V_BITOP3_B32)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mfmadsl.emulator.instructions.row import Special
from mfmadsl.emulator.instructions.source import reads_of_sources, sources_of
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.operation import Operation, masks_of, reads_of
from mfmadsl.emulator.machine.wave import VCC_PAIR, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Register, check_source, check_target


def _conditional_move(instruction: Instruction) -> Operation:
    """v_cndmask_b32: the second source where the mask is set, else the first."""
    first, left, right, *mask = instruction.taking(3, 4)
    register = check_target(first, 1)
    condition = mask[0] if mask else VCC_PAIR
    check_source(condition, "b64", "s")
    # The bits move as they are, unless modifiers change the sign of a float.
    kinds = ["f32" if isinstance(o, Register | Literal) and (o.negate or o.absolute) else "u32"
             for o in (left, right)]  # fmt: skip
    for operand, kind in zip((left, right), kinds, strict=True):
        check_source(operand, kind)
    sources = sources_of(instruction, kinds, (left, right))
    target = target_of(instruction, register, 2)

    def execute(waves: Waves) -> None:
        a, b = (source.read(waves).view(np.uint32) for source in sources)
        target.write(waves, np.where(waves.read_mask(condition), b, a))

    def flow(waves: Waves, undefined: Waves) -> Array:
        a, b = (source.read_bits(undefined) for source in sources)
        return target.flow(undefined, np.where(waves.read_mask(condition), b, a))

    moved = tuple(replace(read, moved=True) for read in reads_of_sources(sources))
    reads = (*masks_of(condition), *moved, *target.reads())
    return Operation(execute, "valu", reads, (target.register,), flow=flow)


def _truth_table(instruction: Instruction) -> Operation:
    """v_bitop3_b32 (gfx950): any function of three bits, given as a table of eight."""
    register, *sources = instruction.taking(4)
    target = check_target(register, 1)
    table = instruction.number("bitop3", bits=8)
    kind = "u16" if "b16" in instruction.name else "u32"
    for source in sources:
        check_source(source, kind)

    def execute(waves: Waves) -> None:
        a, b, c = (waves.read_vector(source, kind) for source in sources)
        result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), dtype=a.dtype)
        for row in range(8):
            if table >> row & 1:
                term = a if row & 4 else ~a
                term = term & (b if row & 2 else ~b)
                result |= term & (c if row & 1 else ~c)
        waves.write_vector(target, result)

    return Operation(execute, "valu", reads_of(*sources), (target,))


SELECT: dict[str, Special] = {
    "v_cndmask_b32": Special(_conditional_move, sub_words=True, signed=True),
    "v_bitop3_b32": Special(_truth_table, frozenset(["bitop3"])),
    "v_bitop3_b16": Special(_truth_table, frozenset(["bitop3"])),
}
