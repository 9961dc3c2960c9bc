"""Vector instructions that move values between lanes (CDNA3 and CDNA4 ISA, VOP1 and VOP3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.instructions.row import Special
from mfmadsl.emulator.machine.bits import Array, pair_of_words, words_of
from mfmadsl.emulator.machine.operation import Operation, moves_of, reads_of
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    Operand,
    Register,
    check_registers,
    check_source,
    check_target,
)


def _lane_number(waves: Waves, operand: Operand) -> Array:
    number = waves.read_scalar(operand, "u32").astype(np.int64) % LANES
    return np.broadcast_to(number, (waves.count,))


def _read_first_lane(instruction: Instruction) -> Operation:
    first, source = instruction.taking(2)
    target = check_target(first, 1, "s")
    check_registers(source, 1, "v")

    def moved(_: Waves, data: Waves) -> Array:
        value = np.broadcast_to(data.read_vector(source, "u32"), (data.count, LANES))
        mask = data.exec_mask()
        if mask is None:
            return np.ascontiguousarray(value[:, 0])
        lane = np.argmax(mask, axis=1)  # lane 0 where none is active, as the ISA has it
        return value[np.arange(data.count), lane]

    return _scalar_result(target, source, (), moved)


def _read_lane(instruction: Instruction) -> Operation:
    first, source, lane = instruction.taking(3)
    target = check_target(first, 1, "s")
    check_registers(source, 1, "v")
    check_source(lane, "u32", "s")

    def moved(waves: Waves, data: Waves) -> Array:
        value = np.broadcast_to(data.read_vector(source, "u32"), (data.count, LANES))
        return value[np.arange(data.count), _lane_number(waves, lane)]

    return _scalar_result(target, source, (lane,), moved)


def _scalar_result(
    target: Register,
    source: Operand,
    controls: tuple[Operand, ...],
    moved: Callable[[Waves, Waves], Array],
) -> Operation:
    return Operation(
        lambda waves: waves.write_scalar(target, moved(waves, waves)),
        "valu",
        reads_of(*controls) + moves_of(source),
        (target,),
        flow=moved,
        whole_wave=True,
    )


def _write_lane(instruction: Instruction) -> Operation:
    """v_writelane_b32: one lane changes, also where EXEC has switched it off."""
    first, value, lane = instruction.taking(3)
    target = check_target(first, 1)
    check_source(value, "u32", "s")
    check_source(lane, "u32", "s")

    def moved(waves: Waves, data: Waves) -> Array:
        row = data.read_vector(target, "u32").copy()
        row[np.arange(data.count), _lane_number(waves, lane)] = data.read_scalar(value, "u32")
        return row

    def execute(waves: Waves) -> None:
        waves.vector[target.index] = moved(waves, waves)

    reads = reads_of(lane) + moves_of(target, value)
    return Operation(execute, "valu", reads, (target,), flow=moved, whole_wave=True)


def _swap_halves(rows: int) -> Callable[[Instruction], Operation]:
    """v_permlane16_swap and v_permlane32_swap: odd rows of the first, even ones of the second."""

    def compile_it(instruction: Instruction) -> Operation:
        first, second = (check_target(operand, 1) for operand in instruction.taking(2))
        odd = np.arange(LANES) // rows % 2 == 1
        partner = np.arange(LANES) ^ rows

        def moved(_: Waves, data: Waves) -> Array:
            a, b = data.read_vector(first, "u32"), data.read_vector(second, "u32")
            return pair_of_words(np.where(odd, b[:, partner], a), np.where(odd, b, a[:, partner]))

        return _two_results(first, second, moved)

    return compile_it


def _swap(instruction: Instruction) -> Operation:
    first, second = (check_target(operand, 1) for operand in instruction.taking(2))

    def moved(_: Waves, data: Waves) -> Array:
        a, b = data.read_vector(first, "u32"), data.read_vector(second, "u32")
        return pair_of_words(b, a)

    return _two_results(first, second, moved)


def _two_results(
    first: Register, second: Register, moved: Callable[[Waves, Waves], Array]
) -> Operation:
    """An operation that changes two registers; `moved` gives both, the first in the low half."""

    def execute(waves: Waves) -> None:
        for register, word in zip((first, second), words_of(moved(waves, waves)), strict=True):
            waves.write_vector(register, word)

    return Operation(execute, "valu", moves_of(first, second), (first, second), flow=moved)


def _count_lower_lanes(high: bool) -> Callable[[Instruction], Operation]:
    """v_mbcnt: how many bits of a mask belong to lanes before this one, plus a number."""

    def compile_it(instruction: Instruction) -> Operation:
        register, mask, addend = instruction.taking(3)
        target = check_target(register, 1)
        check_source(mask, "u32")
        check_source(addend, "u32")
        lane = np.arange(LANES)
        below = np.clip(lane - 32 if high else lane, 0, 32).astype(np.uint64)
        taken = ((np.uint64(1) << below) - np.uint64(1)).astype(np.uint32)

        def execute(waves: Waves) -> None:
            counted = np.bitwise_count(waves.read_vector(mask, "u32") & taken).astype(np.uint32)
            waves.write_vector(target, counted + waves.read_vector(addend, "u32"))

        return Operation(execute, "valu", reads_of(mask, addend), (target,))

    return compile_it


def _nothing(instruction: Instruction) -> Operation:
    """v_nop: it takes its slot, and that is all."""
    instruction.taking(0)
    return Operation(lambda waves: None, "valu")


LANE_INSTRUCTIONS: dict[str, Special] = {
    "v_nop": Special(_nothing),
    "v_readfirstlane_b32": Special(_read_first_lane),
    "v_readlane_b32": Special(_read_lane),
    "v_writelane_b32": Special(_write_lane),
    "v_permlane16_swap_b32": Special(_swap_halves(16)),
    "v_permlane32_swap_b32": Special(_swap_halves(32)),
    "v_swap_b32": Special(_swap),
    "v_mbcnt_lo_u32_b32": Special(_count_lower_lanes(high=False)),
    "v_mbcnt_hi_u32_b32": Special(_count_lower_lanes(high=True)),
}
