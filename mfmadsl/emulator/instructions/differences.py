"""Sums of absolute differences, of bytes and halves (CDNA3 ISA, VOP3: V_SAD_U8 and others)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.instructions.row import Row, Special, row
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    Register,
    check_apart,
    check_registers,
    check_source,
    check_target,
)


def _parts(a: Array, bits: int) -> list[Array]:
    mask = np.uint32((1 << bits) - 1)
    return [(a >> np.uint32(shift) & mask).astype(np.int64) for shift in range(0, 32, bits)]


def _sum(bits: int, masked: bool = False) -> Callable[[Array, Array], Array]:
    """The sum of differences; with `masked`, where the second is 0 there is none."""

    def compute(a: Array, b: Array) -> Array:
        pairs = zip(_parts(a, bits), _parts(b, bits), strict=True)
        terms = [np.where(y == 0, 0, np.abs(x - y)) if masked else np.abs(x - y) for x, y in pairs]
        return np.asarray(sum(terms)).astype(np.uint32)

    return compute


def _added(bits: int, masked: bool = False, shift: int = 0) -> Row:
    total = _sum(bits, masked)
    return row("u32 u32 u32", lambda a, b, c: (total(a, b) << np.uint32(shift)) + c)


def _of_windows(masked: bool) -> Row:
    """Four sums, of the words from each of four bytes on, added to halves."""
    total = _sum(8, masked)

    def compute(a: Array, b: Array, c: Array) -> Array:
        found = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint64)
        for place in range(4):
            window = (a >> np.uint64(8 * place)).astype(np.uint32)
            half = (c >> np.uint64(16 * place)).astype(np.uint32) + total(window, b)
            found |= (half & np.uint32(0xFFFF)).astype(np.uint64) << np.uint64(16 * place)
        return found

    return row("u64 u32 u64", compute, in_passes=True)


DIFFERENCES: dict[str, Row] = {
    "v_sad_u8": _added(8),
    "v_sad_hi_u8": _added(8, shift=16),
    "v_sad_u16": _added(16),
    "v_msad_u8": _added(8, masked=True),
    "v_sad_u32": row("u32 u32 u32", lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c),
    "v_qsad_pk_u16_u8": _of_windows(masked=False),
    "v_mqsad_pk_u16_u8": _of_windows(masked=True),
}


def _four_wide_sums(instruction: Instruction) -> Operation:
    """v_mqsad_u32_u8: the sums of v_mqsad_pk_u16_u8, added to four words.

    Raises OperandError for operands that it does not take.
    """
    first, windows, reference, addends = instruction.taking(4)
    target, added = check_target(first, 4), check_registers(addends, 4, "v")
    check_source(windows, "u64")
    check_source(reference, "u32")
    check_apart(target, windows, reference, added)
    total = _sum(8, masked=True)

    def execute(waves: Waves) -> None:
        a = waves.read_vector(windows, "u64")
        b = waves.read_vector(reference, "u32")
        for place in range(4):
            window = (a >> np.uint64(8 * place)).astype(np.uint32)
            addend, result = (Register("v", each.index + place, 1) for each in (added, target))
            waves.write_vector(result, total(window, b) + waves.read_vector(addend, "u32"))

    reads = reads_of(windows, reference, added)
    return Operation(execute, "valu", reads, (target,))


WIDE_DIFFERENCES: dict[str, Special] = {"v_mqsad_u32_u8": Special(_four_wide_sums)}
