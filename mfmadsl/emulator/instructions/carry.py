"""Vector additions with carries, a bit a lane in scalar registers (CDNA3 ISA, VOP2 and VOP3B)."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.row import QUARTER_RATE, Special, upward
from mfmadsl.emulator.instructions.source import SourceOperand, reads_of_sources, sources_of
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.operation import OperandRead, Operation, masks_of, reads_of
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register, check_source, check_target

_CARRYING_IN = frozenset(["v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32"])


def _carry(instruction: Instruction) -> Operation:
    """v_add_co, v_sub_co and their forms that take a carry in.

    `clamp` lets sums stop at the ends of the range (CDNA3 ISA, section 6.2); LLVM makes
    `uadd.sat` and `usub.sat` of it on chips whose sums always have a carry.
    """
    name = base_name(instruction.name)
    first, out, left, right, *carry = instruction.taking(5 if name in _CARRYING_IN else 4)
    register = check_target(first, 1)
    carry_out = check_target(out, 2, "s")
    for operand in (left, right):
        check_source(operand, "u32")
    for operand in carry:
        check_source(operand, "b64", "s")
    sources = sources_of(instruction, ("u32", "u32"), (left, right))
    target = target_of(instruction, register, 2)
    subtract, reverse = "sub" in name, "rev" in name
    clamp = "clamp" in instruction.modifiers
    if clamp and carry:
        raise OperandError("no manual says what clamp makes of a sum with a carry")

    def execute(waves: Waves) -> None:
        a, b = (source.read(waves).astype(np.int64) for source in sources)
        if reverse:
            a, b = b, a
        carried = waves.read_mask(carry[0]) if carry else 0
        total = a - b - carried if subtract else a + b + carried
        result = np.clip(total, 0, 0xFFFF_FFFF) if clamp else total
        # The sources may be the target: write after reading.
        target.write(waves, np.asarray(result).astype(np.uint32))
        waves.write_mask(carry_out, np.asarray((total < 0) | (total > 0xFFFF_FFFF)))

    reads = (*reads_of_sources(sources), *masks_of(*carry), *target.reads())
    return Operation(execute, "valu", reads, (target.register, carry_out))


def _multiply_add_wide(instruction: Instruction) -> Operation:
    """v_mad_u64_u32 and v_mad_i64_i32: 32 x 32 + 64 bits, with the carry out."""
    register, out, left, right, addend = instruction.taking(5)
    target, carry_out = check_target(register, 2), check_target(out, 2, "s")
    signed = "i64" in instruction.name
    narrow, kind = ("i32", "i64") if signed else ("u32", "u64")
    wide = np.int64 if signed else np.uint64
    for operand, width in ((left, narrow), (right, narrow), (addend, kind)):
        check_source(operand, width)

    def execute(waves: Waves) -> None:
        product = waves.read_vector(left, narrow).astype(wide)
        product = product * waves.read_vector(right, narrow).astype(wide)
        added = waves.read_vector(addend, kind)
        total = np.asarray(product + added)
        carry = _bit_64(product, added, total)  # before the target, which may be a source
        waves.write_vector(target, total)
        waves.write_mask(carry_out, carry)

    def flow(_: Waves, undefined: Waves) -> Array:
        # LLVM uses this for 32 bits too, with nothing in the upper half of the addend.
        return upward(SourceOperand(addend, kind).read_bits(undefined))

    reads = reads_of(left, right)
    if isinstance(addend, Register):
        reads = (*reads, OperandRead(addend, moved=True))
    writes = (target, carry_out)
    return Operation(execute, "valu", reads, writes, flow=flow, slots=QUARTER_RATE)


def _bit_64(a: Array, b: Array, total: Array) -> Array:
    """The bit above a sum of 64 bits: the carry or, of signed numbers, the exact sum's sign."""
    if a.dtype.kind == "u":
        return np.asarray(total < a)
    return np.where((a < 0) == (b < 0), a < 0, total < 0)


CARRIES: dict[str, Special] = {
    **{
        f"v_{name}_co_u32": Special(_carry, frozenset(["clamp"]), sub_words=True)
        for name in ("add", "sub", "subrev", "addc", "subb", "subbrev")
    },
    "v_mad_u64_u32": Special(_multiply_add_wide),
    "v_mad_i64_i32": Special(_multiply_add_wide),
}
