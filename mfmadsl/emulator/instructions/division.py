"""The instructions of divisions that touch a mask (CDNA3 ISA, V_DIV_SCALE and V_DIV_FMAS)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mfmadsl.emulator.instructions.floating import division_scale, scaled_multiply_add
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.row import HALF_RATE, Special
from mfmadsl.emulator.instructions.source import Source, reads_of_sources
from mfmadsl.emulator.machine.bits import Mask, width_of
from mfmadsl.emulator.machine.operation import Operation, Read
from mfmadsl.emulator.machine.wave import LANES, VCC_PAIR, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Operand, check_source, check_target


def _division_scale(instruction: Instruction) -> Operation:
    register, out, *operands = instruction.taking(5)
    kind = base_name(instruction.name)[-3:]
    target, flag = check_target(register, width_of(kind) // 32), check_target(out, 2, "s")
    sources = _sources(operands, kind)

    def execute(waves: Waves) -> None:
        value, denominator, numerator = (
            np.broadcast_to(source.read(waves), (waves.count, LANES)) for source in sources
        )
        result, scaled = division_scale(value, denominator, numerator)
        waves.write_vector(target, result)
        waves.write_mask(flag, scaled)

    reads = reads_of_sources(sources)
    return Operation(execute, "valu", reads, (target, flag), slots=_slots(kind))


def _sources(operands: Sequence[Operand], kind: str) -> list[Source]:
    for operand in operands:
        check_source(operand, kind)
    return [Source(operand, kind) for operand in operands]


def _division_step(instruction: Instruction) -> Operation:
    register, *operands = instruction.taking(4)
    name = base_name(instruction.name)
    kind = name[-3:]
    target = check_target(register, width_of(kind) // 32)
    sources = _sources(operands, kind)

    def execute(waves: Waves) -> None:
        values = (source.read(waves) for source in sources)
        scale: Mask = waves.read_mask(VCC_PAIR)
        waves.write_vector(target, scaled_multiply_add[name](*values, scale))

    reads = (*reads_of_sources(sources), Read(VCC_PAIR))
    return Operation(execute, "valu", reads, (target,), slots=_slots(kind))


def _slots(kind: str) -> int:
    return HALF_RATE if kind == "f64" else 1


DIVISION: dict[str, Special] = {
    "v_div_scale_f32": Special(_division_scale, signed=True),
    "v_div_scale_f64": Special(_division_scale, signed=True),
    **dict.fromkeys(scaled_multiply_add, Special(_division_step, signed=True)),
}
